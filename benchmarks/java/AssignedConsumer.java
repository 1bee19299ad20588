import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Kafka's Java consumer reads every partition of a topic to its present end, without a group, and
 * prints the seconds it took from the first record on, and how many records there were.
 *
 * kafka-consumer-perf-test does the same as a member of a group; this runs where groups do not.
 */
public final class AssignedConsumer {
    public static void main(String[] args) {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", args[0],
            "auto.offset.reset", "earliest",
            "enable.auto.commit", false,
            "max.poll.records", 5000,
            "receive.buffer.bytes", 2 << 20,
            "fetch.max.bytes", 50 << 20);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                partitions.add(new TopicPartition(args[1], i));
            }
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = consumer.endOffsets(partitions).values().stream().mapToLong(Long::longValue).sum();
            long seen = consumer.poll(Duration.ofSeconds(30)).count();
            long start = System.nanoTime();
            long first = seen;
            while (seen < end) {
                seen += consumer.poll(Duration.ofSeconds(30)).count();
            }
            System.out.println((System.nanoTime() - start) / 1e9 + " " + (seen - first));
        }
    }
}
