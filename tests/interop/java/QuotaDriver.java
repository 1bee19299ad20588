import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.errors.ThrottlingQuotaExceededException;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.QuotaViolationException;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.SimpleRate;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.network.Session;
import org.apache.kafka.server.config.ClientQuotaManagerConfig;
import org.apache.kafka.server.quota.ClientQuotaEntity;
import org.apache.kafka.server.quota.ClientQuotaManager;
import org.apache.kafka.server.quota.ControllerMutationQuota;
import org.apache.kafka.server.quota.ControllerMutationQuotaManager;
import org.apache.kafka.server.quota.QuotaType;
import org.apache.kafka.server.quota.QuotaUtils;

/**
 * Kafka's own quotas, on a clock that the input sets. Each line of the input is one step, each line
 * of the output its result: a throttle time in milliseconds, or -1 and the throttle time if refused.
 */
public class QuotaDriver {
    private static final String DEFAULT = "<default>";
    private static final String NONE = "-";
    private static final String EMPTY = "''";

    private static class SetTime implements Time {
        long nowMs = 0;

        public long milliseconds() {
            return nowMs;
        }

        public long nanoseconds() {
            return nowMs * 1_000_000;
        }

        public void sleep(long ms) {
            nowMs += ms;
        }

        public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
            throw new UnsupportedOperationException();
        }
    }

    private final SetTime time = new SetTime();
    private final Map<String, ClientQuotaManager> managers = new HashMap<>();
    private final Map<String, Sensor> sensors = new HashMap<>();
    private Metrics metrics;
    private int samples;
    private int seconds;

    public static void main(String[] args) throws Exception {
        QuotaDriver driver = new QuotaDriver();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder out = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.append(driver.step(line.split(" "))).append('\n');
        }
        System.out.print(out);
        System.out.flush();
        Runtime.getRuntime().halt(0); // threads of the managers go on
    }

    private String step(String[] words) throws Exception {
        switch (words[0]) {
            case "begin":
                return begin(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            case "quota":
                return quota(words[1], words[2], words[3], words[4]);
            case "at":
                time.nowMs = Long.parseLong(words[1]);
                return "0";
            case "record":
                return record(words[1], words[2], words[3], Double.parseDouble(words[4]));
            case "take-back":
                manager(words[1]).unrecordQuotaSensor(
                    session(words[2]), client(words[3]), Double.parseDouble(words[4]), time.nowMs);
                return "0";
            case "strict":
            case "permissive":
                return mutate(words[0], words[1], words[2], Double.parseDouble(words[3]));
            case "rate":
                return rate(words[1], Double.parseDouble(words[2]), Double.parseDouble(words[3]));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private String begin(int samples, int seconds) {
        this.samples = samples;
        this.seconds = seconds;
        managers.values().forEach(ClientQuotaManager::initiateShutdown);
        managers.clear();
        sensors.clear();
        metrics = new Metrics(time);
        return "0";
    }

    private ClientQuotaManager manager(String kind) {
        ClientQuotaManagerConfig config = new ClientQuotaManagerConfig(samples, seconds);
        return managers.computeIfAbsent(kind, name -> {
            switch (name) {
                case "request":
                    return new kafka.server.ClientRequestQuotaManager(
                        config, metrics, time, "", Optional.empty());
                case "mutation":
                    return new ControllerMutationQuotaManager(
                        config, metrics, time, "", Optional.empty());
                case "fetch":
                    return new ClientQuotaManager(config, metrics, QuotaType.FETCH, time, "");
                default:
                    return new ClientQuotaManager(config, metrics, QuotaType.PRODUCE, time, "");
            }
        });
    }

    private String quota(String kind, String user, String client, String value) {
        Optional<ClientQuotaEntity.ConfigEntity> users = switch (user) {
            case NONE -> Optional.empty();
            case DEFAULT -> Optional.of(ClientQuotaManager.DEFAULT_USER_ENTITY);
            default -> Optional.of(new ClientQuotaManager.UserEntity(user));
        };
        Optional<ClientQuotaEntity.ConfigEntity> clients = switch (client) {
            case NONE -> Optional.empty();
            case DEFAULT -> Optional.of(ClientQuotaManager.DEFAULT_USER_CLIENT_ID);
            default -> Optional.of(new ClientQuotaManager.ClientIdEntity(client));
        };
        Optional<Quota> bound = value.equals(NONE)
            ? Optional.empty() : Optional.of(Quota.upperBound(Double.parseDouble(value)));
        manager(kind).updateQuota(users, clients, bound);
        return "0";
    }

    private String record(String kind, String user, String client, double value) throws Exception {
        ClientQuotaManager manager = manager(kind);
        return "" + manager.recordAndGetThrottleTimeMs(
            session(user), client(client), value, time.nowMs);
    }

    private String mutate(String how, String user, String client, double permits)
            throws Exception {
        ControllerMutationQuotaManager manager = (ControllerMutationQuotaManager) manager("mutation");
        ControllerMutationQuota quota = how.equals("strict")
            ? manager.newStrictQuotaFor(session(user), client(client))
            : manager.newPermissiveQuotaFor(session(user), client(client));
        try {
            quota.record(permits);
        } catch (ThrottlingQuotaExceededException refused) {
            return "-1 " + quota.throttleTime();
        }
        return "" + quota.throttleTime();
    }

    /** A rate outside the managers, whose class is named: that of connections, or of replication. */
    private String rate(String kind, double bound, double value) {
        Sensor sensor = sensors.computeIfAbsent(kind + bound, name -> {
            MetricConfig config = new MetricConfig()
                .samples(samples).timeWindow(seconds, TimeUnit.SECONDS).quota(Quota.upperBound(bound));
            Sensor made = metrics.sensor(name, config);
            made.add(metrics.metricName(name, "test"), kind.equals("simple") ? new SimpleRate() : new Rate());
            return made;
        });
        try {
            sensor.record(value, time.nowMs);
            return "0";
        } catch (QuotaViolationException exceeded) {
            return "" + (kind.equals("simple")
                ? QuotaUtils.throttleTime(exceeded, time.nowMs)
                : QuotaUtils.boundedThrottleTime(exceeded, seconds * 1000L, time.nowMs));
        }
    }

    private static Session session(String user) throws Exception {
        KafkaPrincipal principal = new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
        return new Session(principal, InetAddress.getLoopbackAddress());
    }

    private static String client(String name) {
        return name.equals(EMPTY) ? "" : name;
    }
}
