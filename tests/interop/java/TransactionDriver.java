import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AbortTransactionSpec;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Transactions with Kafka's own producer; prints one line for each thing that a test looks at. */
public class TransactionDriver {
    private static String bootstrap;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        String topic = args[1];
        String id = "java-" + topic;
        TopicPartition first = new TopicPartition(topic, 0);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            KafkaProducer<String, String> producer = producer(id);
            producer.initTransactions();
            int before = described(admin, id).producerEpoch();
            for (int number = 0; number < 6; number++) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, null, "a" + number));
                producer.send(new ProducerRecord<>(topic, 1, null, "b" + number));
                producer.flush();
                if (number % 3 == 2) producer.abortTransaction();
                else producer.commitTransaction();
            }
            System.out.println("epochs " + (described(admin, id).producerEpoch() - before));
            System.out.println("committed " + read(topic, "read_committed", 8).size());
            System.out.println("uncommitted " + read(topic, "read_uncommitted", 12).size());

            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, null, "zombie")).get();
            System.out.println("open " + described(admin, id).state());
            KafkaProducer<String, String> newer = producer(id);
            newer.initTransactions();
            System.out.println("zombie " + failure(producer::commitTransaction));

            newer.beginTransaction();
            newer.send(new ProducerRecord<>(topic, 0, null, "with offsets"));
            newer.sendOffsetsToTransaction(
                Map.of(first, new OffsetAndMetadata(7)), new ConsumerGroupMetadata(id));
            newer.commitTransaction();
            System.out.println("offset " + admin.listConsumerGroupOffsets(id)
                .partitionsToOffsetAndMetadata().get().get(first).offset());

            System.out.println("piped " + pipe(admin, newer, topic, id + "-pipe"));
            System.out.println("late " + late(topic));

            newer.beginTransaction();
            newer.send(new ProducerRecord<>(topic, 0, null, "hangs")).get();
            for (ProducerState state : producers(admin, first))
                if (state.currentTransactionStartOffset().isPresent())
                    admin.abortTransaction(new AbortTransactionSpec(
                        first, state.producerId(), (short) state.producerEpoch(),
                        state.coordinatorEpoch().orElse(0))).all().get();
            System.out.println("hanging " + producers(admin, first).stream()
                .filter(state -> state.currentTransactionStartOffset().isPresent()).count());
            admin.fenceProducers(List.of(id)).all().get();
            System.out.println("fenced " + failure(newer::commitTransaction));
            producer.close(Duration.ZERO);
            newer.close(Duration.ZERO);
        }
    }

    /** Consume, transform, produce, as a member of a group; half of it in a transaction that fails. */
    private static String pipe(Admin admin, KafkaProducer<String, String> producer, String topic, String group)
            throws Exception {
        TopicPartition second = new TopicPartition(topic, 1);
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        List<String> told = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            int taken = 0;
            for (int tries = 0; taken < 4 && tries < 200; tries++)
                taken += consumer.poll(Duration.ofMillis(100)).records(second).size();
            for (boolean commits : new boolean[] {false, true}) {
                producer.beginTransaction();
                producer.send(new ProducerRecord<>(topic, 0, null, "piped"));
                producer.sendOffsetsToTransaction(
                    Map.of(second, new OffsetAndMetadata(consumer.position(second))),
                    consumer.groupMetadata());
                if (commits) producer.commitTransaction();
                else producer.abortTransaction();
                OffsetAndMetadata committed = admin.listConsumerGroupOffsets(group)
                    .partitionsToOffsetAndMetadata().get().get(second);
                told.add(committed == null ? "nothing" : String.valueOf(committed.offset() == consumer.position(second)));
            }
        }
        return String.join(",", told);
    }

    /** A transaction that takes longer than it said it would. */
    private static String late(String topic) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", "late-" + topic);
        settings.put("transaction.timeout.ms", 500);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
                KafkaProducer<String, String> producer =
                    new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 1, null, "late")).get();
            for (int tries = 0; tries < 300; tries++) {
                if (described(admin, "late-" + topic).state().toString().equals("CompleteAbort")) break;
                Thread.sleep(100);
            }
            return failure(producer::commitTransaction);
        }
    }

    private static KafkaProducer<String, String> producer(String id) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static TransactionDescription described(Admin admin, String id) throws Exception {
        return admin.describeTransactions(List.of(id)).all().get().get(id);
    }

    private static List<ProducerState> producers(Admin admin, TopicPartition at) throws Exception {
        return admin.describeProducers(List.of(at)).all().get().get(at).activeProducers();
    }

    private static String failure(Runnable action) {
        try {
            action.run();
            return "none";
        } catch (RuntimeException failure) {
            return failure.getClass().getSimpleName();
        }
    }

    private static List<String> read(String topic, String isolation, int count) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("isolation.level", isolation);
        List<String> values = new ArrayList<>();
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions =
                List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(at -> consumer.position(at) < ends.get(at)))
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(100)))
                    values.add(record.value());
        }
        return values;
    }
}
