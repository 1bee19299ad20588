import java.io.BufferedReader;
import java.io.FileWriter;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of groups with Kafka's own consumer: what tests/interop/members/hosting.py says of hosts,
 * in Java. Times are the machine's monotonic clock, as Python's are.
 */
public final class GroupHost {
    private static final Map<String, String> STRATEGIES = Map.of(
        "range", "RangeAssignor",
        "roundrobin", "RoundRobinAssignor",
        "sticky", "StickyAssignor",
        "cooperative-sticky", "CooperativeStickyAssignor");

    private final String bootstrap;
    private final PrintWriter book;
    private final int sessionMs;

    private GroupHost(String bootstrap, PrintWriter book, int sessionMs) {
        this.bootstrap = bootstrap;
        this.book = book;
        this.sessionMs = sessionMs;
    }

    public static void main(String[] args) throws Exception {
        PrintWriter book = new PrintWriter(new FileWriter(args[1], true), true);
        GroupHost host = new GroupHost(args[0], book, Integer.parseInt(args[2]));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        Map<String, Member> members = new HashMap<>();
        List<Member> everybody = new ArrayList<>();
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t");
            if (words[0].equals("join")) {
                Member member = host.new Member(words[1], words[2], words[3], words[4]);
                members.put(words[1], member);
                everybody.add(member);
                member.start();
            } else {
                members.remove(words[1]).stopping = true;
            }
        }
        for (Member member : everybody) {
            member.stopping = true;
        }
        for (Member member : everybody) {
            member.join(30_000);
        }
    }

    private synchronized void write(String line) {
        book.println(line);
    }

    private final class Member extends Thread implements ConsumerRebalanceListener {
        private final String group;
        private final String topic;
        private final String strategy;
        private final Map<Integer, Integer> assigned = new HashMap<>();
        private final List<String> commits = new ArrayList<>();
        private int committedIn;
        private volatile boolean stopping;

        private Member(String name, String group, String topic, String strategy) {
            super(name);
            this.group = group;
            this.topic = topic;
            this.strategy = strategy;
        }

        @Override
        public void run() {
            Map<String, Object> settings = new HashMap<>();
            settings.put("bootstrap.servers", bootstrap);
            settings.put("group.id", group);
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + STRATEGIES.get(strategy));
            settings.put("auto.offset.reset", "earliest");
            settings.put("enable.auto.commit", false);
            settings.put("session.timeout.ms", sessionMs);
            settings.put("heartbeat.interval.ms", 300);
            settings.put("fetch.max.wait.ms", 50);
            try (KafkaConsumer<String, String> consumer =
                    new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
                consumer.subscribe(List.of(topic), this);
                while (!stopping) {
                    ConsumerRecords<String, String> found = consumer.poll(Duration.ofMillis(100));
                    int generation = consumer.groupMetadata().generationId();
                    tellCommits(generation);
                    work(consumer, found, generation);
                }
                tellCommits(-1);
            }
        }

        /**
         * Write down the commits of the round before, now that it is known which generation they were made in.
         * A commit hears on its way of a rebalance that has ended meanwhile, and is then sent in the new
         * generation, though the consumer tells of that one with the next poll only.
         */
        private void tellCommits(int generation) {
            for (String commit : commits) {
                write(commit + ", \"generation\": " + (committedIn == generation ? generation : -1) + "}");
            }
            commits.clear();
        }

        private void work(KafkaConsumer<String, String> consumer, ConsumerRecords<String, String> found, int generation) {
            for (TopicPartition at : found.partitions()) {
                List<String> records = new ArrayList<>();
                for (ConsumerRecord<String, String> record : found.records(at)) {
                    records.add("[" + record.offset() + ", \"" + record.value() + "\"]");
                }
                write("{\"kind\": \"poll\", " + common(at.partition()) + ", \"assigned\": "
                    + assigned.getOrDefault(at.partition(), 0) + ", \"records\": " + records
                    + ", \"generation\": " + generation + ", \"at_ns\": " + System.nanoTime() + "}");
            }
            if (found.isEmpty()) {
                return;
            }
            long began = System.nanoTime();
            String outcome = "ok";
            try {
                consumer.commitSync();
            } catch (KafkaException rebalanced) {
                outcome = "unknown"; // whoever owns them next reads them again
            }
            for (TopicPartition at : found.partitions()) {
                List<ConsumerRecord<String, String>> records = found.records(at);
                commits.add("{\"kind\": \"commit\", " + common(at.partition())
                    + ", \"offset\": " + (records.get(records.size() - 1).offset() + 1)
                    + ", \"invoked_ns\": " + began + ", \"completed_ns\": " + System.nanoTime()
                    + ", \"outcome\": \"" + outcome + "\"");
            }
            committedIn = generation;
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            for (TopicPartition at : partitions) {
                assigned.merge(at.partition(), 1, Integer::sum);
                owns(at.partition(), true);
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            for (TopicPartition at : partitions) {
                owns(at.partition(), false);
            }
        }

        private void owns(int partition, boolean gained) {
            write("{\"kind\": \"owns\", " + common(partition) + ", \"at_ns\": " + System.nanoTime()
                + ", \"gained\": " + gained + "}");
        }

        private String common(int partition) {
            return "\"process\": \"" + getName() + "\", \"group\": \"" + group
                + "\", \"partition\": \"" + topic + "-" + partition + "\"";
        }
    }
}
