import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.security.auth.callback.Callback;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Does the cells of tests/interop/security with the Java client, several at a time: a line of stdin is
 * a number, the topic to write to, the topic to read, the group, the value and the client's properties
 * in Base64, separated by tabs. A line of stdout is the number and, of writing and of reading, "ok" or
 * the name of the exception.
 */
public final class SecurityDriver {
    private static final Duration WAIT = Duration.ofSeconds(30);

    private record Job(String number, String topic, String read, String group, String value, Properties config) {
        static Job of(String line) throws Exception {
            String[] words = line.split("\t", -1);
            Properties config = new Properties();
            byte[] text = Base64.getDecoder().decode(words[5]);
            config.load(new StringReader(new String(text, StandardCharsets.UTF_8)));
            config.put("key.serializer", StringSerializer.class.getName());
            config.put("value.serializer", StringSerializer.class.getName());
            config.put("key.deserializer", StringDeserializer.class.getName());
            config.put("value.deserializer", StringDeserializer.class.getName());
            config.put("group.id", words[3]);
            config.put("auto.offset.reset", "earliest");
            return new Job(words[0], words[1], words[2], words[3], words[4], config);
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(args[0]));
        List<Future<String>> answers = new ArrayList<>();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            Job job = Job.of(line);
            answers.add(pool.submit(() -> job.number + "\t"
                + attempt(() -> produce(job)) + "\t" + attempt(() -> consume(job))));
        }
        for (Future<String> answer : answers) {
            System.out.println(answer.get());
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static String attempt(Callable<Void> part) {
        try {
            part.call();
            return "ok";
        } catch (ExecutionException failed) {
            return failed.getCause().getClass().getSimpleName();
        } catch (Exception failed) {
            return failed.getClass().getSimpleName();
        }
    }

    private static Void produce(Job job) throws Exception {
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(job.config)) {
            producer.send(new ProducerRecord<>(job.topic, job.value)).get();
        }
        return null;
    }

    private static Void consume(Job job) throws Exception {
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(job.config)) {
            consumer.subscribe(Set.of(job.read));
            long deadline = System.nanoTime() + WAIT.toNanos();
            while (System.nanoTime() < deadline) {
                for (ConsumerRecord<String, String> found : consumer.poll(Duration.ofSeconds(1))) {
                    if (found.value().equals(job.value)) {
                        return null;
                    }
                }
            }
        }
        throw new IllegalStateException("nothing came");
    }

    /** Hands the broker the token in the login module's option, whatever it is worth. */
    public static final class Handler implements AuthenticateCallbackHandler {
        private String token;

        @Override
        public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback) {
                    ((OAuthBearerTokenCallback) callback).token(new Token(token));
                }
            }
        }

        @Override
        public void close() {
        }
    }

    private record Token(String value) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }

        @Override
        public long lifetimeMs() {
            return System.currentTimeMillis() + 3_600_000;
        }

        @Override
        public String principalName() {
            return "alice";
        }

        @Override
        public Long startTimeMs() {
            return System.currentTimeMillis();
        }
    }
}
