package oracles;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;

/** Answers each line of standard input with one of standard output, until the input ends. */
public final class Pipe {
    /** What makes an answer of a question. */
    public interface Answer {
        Object of(String question) throws Exception;
    }

    private Pipe() { }

    /** Answers; whatever is raised ends the process. */
    public static void answer(final Answer answer) throws Exception {
        final BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer.of(line));
            out.flush();
        }
    }

    /** Answers; what is refused with a RuntimeException has an answer of its own. */
    public static void answer(final Answer answer, final Function<RuntimeException, Object> refused)
            throws Exception {
        answer(line -> {
            try {
                return answer.of(line);
            } catch (final RuntimeException problem) {
                return refused.apply(problem);
            }
        });
    }
}
