import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Answers the questions of tests/interop/client.py with the Java client, for as long as they come:
 * a command and its arguments on a line of stdin, separated by tabs; the answer on a line of stdout,
 * "ok" and values, or "refused", the exception's name and Kafka's code for it.
 *
 * One virtual machine serves all tests of one version. What record number i looks like is said in
 * tests/interop/series.py; record() and digest() here must agree with it.
 */
public final class InteropDriver {
    private static final long STEP_MS = 10;
    private static final int LIMIT = 8 << 20;
    private static final Duration WAIT = Duration.ofSeconds(20);
    private static final List<Header> PLAIN = List.of(
        new RecordHeader("name", bytes("first")),
        new RecordHeader("empty", new byte[0]),
        new RecordHeader("name", bytes("again")));
    private static final List<Header> WITH_NULL =
        List.of(PLAIN.get(0), PLAIN.get(1), PLAIN.get(2), new RecordHeader("null", (byte[]) null));
    private static final Map<String, List<Header>> HEADERS =
        Map.of("without", List.of(), "plain", PLAIN, "null", WITH_NULL);

    private final Map<String, Object> common;
    private final Admin admin;

    private InteropDriver(String bootstrap) {
        common = Map.of("bootstrap.servers", bootstrap);
        admin = Admin.create(common);
    }

    public static void main(String[] args) throws IOException {
        InteropDriver driver = new InteropDriver(args[0]);
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(driver.answer(line.split("\t", -1)));
            System.out.flush();
        }
        driver.admin.close();
    }

    private String answer(String[] asked) {
        try {
            return "ok\t" + ask(asked);
        } catch (ExecutionException failed) {
            return refused(failed.getCause());
        } catch (Exception failed) {
            return refused(failed);
        }
    }

    private static String refused(Throwable failure) {
        // The consumer has an exception of its own, of the same name, that carries the partitions.
        Errors error = failure instanceof OffsetOutOfRangeException
            ? Errors.OFFSET_OUT_OF_RANGE
            : Errors.forException(failure);
        String message = String.valueOf(failure.getMessage()).replaceAll("\\s", " ");
        return String.join("\t", "refused", failure.getClass().getSimpleName(), String.valueOf(error.code()), message);
    }

    private String ask(String[] asked) throws Exception {
        String topic = asked[1];
        switch (asked[0]) {
            case "create": return create(topic, Integer.parseInt(asked[2]), pairs(asked, 3));
            case "count": return String.valueOf(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size());
            case "grow": return done(admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(Integer.parseInt(asked[2])))).all());
            case "settings": return settings(topic);
            case "alter": return alter(topic, pairs(asked, 2));
            case "delete": return done(admin.deleteTopics(List.of(topic)).all());
            case "trim": return done(admin.deleteRecords(Map.of(first(topic), RecordsToDelete.beforeOffset(Long.parseLong(asked[2])))).all());
            case "produce": return produce(topic, asked[2], Integer.parseInt(asked[3]), Long.parseLong(asked[4]), HEADERS.get(asked[5]), Integer.parseInt(asked[6]));
            case "read": return read(topic, Integer.parseInt(asked[2]), asked[3].equals("True"), Long.parseLong(asked[4]));
            case "polls": return polls(topic, Long.parseLong(asked[2]));
            case "offset": return String.valueOf(admin.listOffsets(Map.of(first(topic), spec(asked[2]))).partitionResult(first(topic)).get().offset());
            case "cluster": return cluster();
            case "bytes": return bytesOnDisk(topic);
            case "elect": return elect(topic);
            default: throw new IllegalArgumentException(asked[0]);
        }
    }

    private static String done(Future<?> future) throws Exception {
        future.get();
        return "";
    }

    private String create(String topic, int partitions, Map<String, String> settings) throws Exception {
        NewTopic wanted = new NewTopic(topic, partitions, (short) 1).configs(settings);
        return done(admin.createTopics(List.of(wanted)).all());
    }

    private String settings(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Config config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        List<String> told = new ArrayList<>();
        for (ConfigEntry entry : config.entries()) {
            told.add(entry.name() + "=" + entry.value());
        }
        return String.join("\t", told);
    }

    private String alter(String topic, Map<String, String> changes) throws Exception {
        Collection<AlterConfigOp> operations = new ArrayList<>();
        changes.forEach((name, value) ->
            operations.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return done(admin.incrementalAlterConfigs(Map.of(resource, operations)).all());
    }

    private String cluster() throws Exception {
        DescribeClusterResult told = admin.describeCluster();
        return told.clusterId().get() + "\t" + told.controller().get().id() + "\t" + told.nodes().get().size();
    }

    private String bytesOnDisk(String topic) throws Exception {
        int node = admin.describeCluster().nodes().get().iterator().next().id();
        long[] size = {0};
        admin.describeLogDirs(List.of(node)).allDescriptions().get().get(node).values()
            .forEach(folder -> folder.replicaInfos().forEach((partition, info) ->
                size[0] += partition.equals(first(topic)) ? info.size() : 0));
        return String.valueOf(size[0]);
    }

    private String elect(String topic) throws Exception {
        return admin.electLeaders(ElectionType.PREFERRED, Set.of(first(topic))).partitions().get()
            .get(first(topic)).map(failure -> failure.getClass().getSimpleName()).orElse("elected");
    }

    private String produce(String topic, String codec, int count, long base, List<Header> headers, int size) throws Exception {
        Map<String, Object> settings = new HashMap<>(common);
        settings.put("compression.type", codec);
        settings.put("max.request.size", LIMIT);
        settings.put("linger.ms", 5);
        List<Future<?>> sent = new ArrayList<>(count);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (int i = 0; i < count; i++) {
                sent.add(producer.send(record(topic, i, base, headers, size)));
            }
            producer.flush();
        }
        for (Future<?> future : sent) {
            future.get();
        }
        return "";
    }

    private static ProducerRecord<byte[], byte[]> record(String topic, int i, long base, List<Header> headers, int size) {
        byte[] key = i % 7 == 6 && i % 11 != 10 ? null : bytes("key-" + i % 1000);
        byte[] value = null;
        if (i % 11 != 10) {
            StringBuilder text = new StringBuilder("value-" + i + "-");
            int wanted = size > 0 ? size : i % 150;
            while (text.length() < wanted) {
                text.append('x');
            }
            value = bytes(text.toString());
        }
        Long timestamp = base < 0 ? null : base + i * STEP_MS;
        return new ProducerRecord<>(topic, 0, timestamp, key, value, headers);
    }

    private String read(String topic, int count, boolean stamped, long start) throws Exception {
        Map<String, Object> settings = new HashMap<>(common);
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", false);
        settings.put("max.poll.records", 10_000);
        settings.put("max.partition.fetch.bytes", LIMIT);
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        int found = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(first(topic)));
            consumer.seek(first(topic), start);
            while (found < count) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(WAIT);
                if (records.isEmpty()) {
                    throw new IllegalStateException("no records came in time, " + found + " before");
                }
                for (ConsumerRecord<byte[], byte[]> record : records) {
                    digest.update(serialised(record, stamped));
                }
                found += records.count();
            }
        }
        return found + "\t" + HexFormat.of().formatHex(digest.digest());
    }

    /** The offsets that each poll returns, up to the end of the partition; "-" for a poll that returns none. */
    private String polls(String topic, long end) {
        Map<String, Object> settings = new HashMap<>(common);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        settings.put("max.poll.records", 10_000);
        List<String> seen = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(first(topic)));
            while (consumer.position(first(topic)) < end) {
                List<String> offsets = new ArrayList<>();
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(WAIT)) {
                    offsets.add(String.valueOf(record.offset()));
                }
                seen.add(offsets.isEmpty() ? "-" : String.join(",", offsets));
            }
        }
        return String.join("\t", seen);
    }

    private static byte[] serialised(ConsumerRecord<byte[], byte[]> record, boolean stamped) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeLong(stamped ? record.timestamp() : -1);
        sized(out, record.key());
        sized(out, record.value());
        Header[] headers = record.headers().toArray();
        out.writeInt(headers.length);
        for (Header header : headers) {
            sized(out, bytes(header.key()));
            sized(out, header.value());
        }
        return bytes.toByteArray();
    }

    private static void sized(DataOutputStream out, byte[] data) throws IOException {
        out.writeInt(data == null ? -1 : data.length);
        if (data != null) {
            out.write(data);
        }
    }

    private static OffsetSpec spec(String place) {
        switch (place) {
            case "-1": return OffsetSpec.latest();
            case "-2": return OffsetSpec.earliest();
            case "-3": return OffsetSpec.maxTimestamp();
            default: return OffsetSpec.forTimestamp(Long.parseLong(place));
        }
    }

    private static Map<String, String> pairs(String[] asked, int from) {
        Map<String, String> pairs = new HashMap<>();
        for (int i = from; i < asked.length; i++) {
            int equals = asked[i].indexOf('=');
            pairs.put(asked[i].substring(0, equals), asked[i].substring(equals + 1));
        }
        return pairs;
    }

    private static TopicPartition first(String topic) {
        return new TopicPartition(topic, 0);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
