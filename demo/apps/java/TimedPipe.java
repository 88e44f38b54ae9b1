package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/**
 * Decides what was loaded, as often as it is asked, until standard input ends.
 *
 * A line of JSON is kept and answered with "{}"; a line "decide" is answered with what is made of it.
 */
public final class TimedPipe {
    /** What makes an answer of what was loaded last. */
    public interface Decider {
        ObjectNode decide(JsonNode loaded);
    }

    private static final ObjectMapper JSON = new ObjectMapper();

    private TimedPipe() { }

    /** Answers; whatever is raised ends the process. */
    public static void answer(final Decider decider) throws Exception {
        final BufferedReader in =
            new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        JsonNode loaded = JSON.createObjectNode();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("decide")) {
                out.println(decider.decide(loaded));
            } else {
                loaded = JSON.readTree(line);
                out.println("{}");
            }
            out.flush();
        }
    }
}
