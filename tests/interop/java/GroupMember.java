import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One member of a group: reads until its input ends, then leaves.
 *
 * <p>Arguments: bootstrap servers, group, topic, then settings as key=value. After each change it
 * prints "has" and the partitions it has; for each record "read", its partition and its value.
 */
public final class GroupMember {
    public static void main(String[] args) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", args[0]);
        settings.put("group.id", args[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        for (int at = 3; at < args.length; at++) {
            String[] pair = args[at].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(args[2]), new Committing(consumer));
            BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            TreeSet<String> said = null;
            while (!input.ready()) {
                consumer.poll(Duration.ofMillis(50)).forEach(record -> System.out.println(
                        "read " + record.partition() + " " + new String(record.value())));
                TreeSet<String> has = new TreeSet<>();
                consumer.assignment().forEach(each -> has.add(Integer.toString(each.partition())));
                if (!has.equals(said)) {
                    System.out.println("has " + String.join(",", has));
                    said = has;
                }
                System.out.flush();
            }
            consumer.commitSync();
        }
    }

    private record Committing(KafkaConsumer<byte[], byte[]> consumer)
            implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            consumer.commitSync();
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        @Override
        public void onPartitionsLost(Collection<TopicPartition> partitions) {}
    }
}
