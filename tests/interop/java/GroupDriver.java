import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Kafka's own consumers in groups, as many as are asked for: one command a line on standard input,
 * tab-separated, one answer a line. A command on a consumer that fails answers "refused" with the
 * exception's name; polling brings what came since, so that a test drives all members in turn.
 */
public class GroupDriver {
    private static final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] asked = line.split("\t", -1);
            try {
                System.out.println("ok\t" + String.join("\t", answer(args[0], asked)));
            } catch (Exception fault) {
                Throwable cause = fault.getCause() == null ? fault : fault.getCause();
                System.out.println("refused\t" + cause.getClass().getSimpleName());
            }
        }
        for (KafkaConsumer<String, String> left : consumers.values()) left.close();
    }

    private static List<String> answer(String bootstrap, String[] asked) {
        KafkaConsumer<String, String> one = consumers.get(asked[1]);
        List<String> said = new ArrayList<>();
        switch (asked[0]) {
            case "open": // name, topic or /pattern/, settings
                Map<String, Object> settings = new HashMap<>();
                settings.put("bootstrap.servers", bootstrap);
                settings.put("auto.offset.reset", "earliest");
                settings.put("enable.auto.commit", "false");
                for (int at = 3; at < asked.length; at++) {
                    String[] pair = asked[at].split("=", 2);
                    settings.put(pair[0], pair[1]);
                }
                one = new KafkaConsumer<>(
                    settings, new StringDeserializer(), new StringDeserializer());
                consumers.put(asked[1], one);
                if (asked[2].startsWith("/"))
                    one.subscribe(new SubscriptionPattern(asked[2].substring(1)));
                else one.subscribe(List.of(asked[2]));
                break;
            case "poll": // name, ms
                long wait = Long.parseLong(asked[2]);
                for (ConsumerRecord<String, String> each : one.poll(Duration.ofMillis(wait)))
                    said.add(each.value());
                break;
            case "assignment":
                for (TopicPartition part : one.assignment()) said.add(part.toString());
                break;
            case "commit":
                one.commitSync();
                break;
            case "epoch":
                said.add(String.valueOf(one.groupMetadata().generationId()));
                break;
            case "close":
                consumers.remove(asked[1]).close();
                break;
            default:
                throw new IllegalArgumentException(asked[0]);
        }
        return said;
    }
}
