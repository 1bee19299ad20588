import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Kafka's command-line tools one after the other in one virtual machine, because starting one
 * takes longer than most of them: a main class and its arguments on a line of stdin, separated by
 * tabs; its exit code and what it printed, in Base64, on a line of stdout.
 */
public final class ToolDriver {
    private static final class Exited extends RuntimeException {
        private Exited() {
            super(null, null, false, false);
        }
    }

    /** With which the running tool meant to exit; null if it returned. */
    private static Integer exitCode;

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        Exit.setExitProcedure((code, message) -> {
            // A tool may catch what is thrown here, and exit again with another code.
            exitCode = exitCode == null ? code : exitCode;
            throw new Exited();
        });
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            String[] words = line.split("\t", -1);
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            ByteArrayOutputStream err = new ByteArrayOutputStream();
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            answers.println(code + "\t" + encoded(out) + "\t" + encoded(err));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static int run(String tool, String[] args) {
        exitCode = null;
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) args);
            return 0;
        } catch (InvocationTargetException ended) {
            if (ended.getCause() instanceof Exited) {
                return exitCode;
            }
            ended.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException failed) {
            failed.printStackTrace();
            return 1;
        }
    }

    private static String encoded(ByteArrayOutputStream bytes) {
        String text = bytes.toString(StandardCharsets.UTF_8);
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }
}
