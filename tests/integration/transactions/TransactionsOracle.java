package org.apache.kafka.tools;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import oracles.Pipe;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.common.utils.Time;

/**
 * kafka-transactions.sh behind a pipe, without a JVM for each command: its arguments a line in, the
 * rows of its table a line out, each with the names of its columns.
 */
public final class TransactionsOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    private TransactionsOracle() { }

    public static void main(final String[] arguments) throws Exception {
        Exit.setExitProcedure((status, message) -> { }); // it ends the JVM after each command
        Pipe.answer(line -> run(JSON.readTree(line)));
    }

    private static ObjectNode run(final JsonNode question) throws Exception {
        final String servers = question.get("servers").asText();
        final List<String> words = new ArrayList<>(List.of("--bootstrap-server", servers));
        question.get("arguments").forEach(word -> words.add(word.asText()));
        final ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
            TransactionsCommand.execute(
                words.toArray(new String[0]),
                namespace -> Admin.create(Map.of("bootstrap.servers", servers)),
                out,
                Time.SYSTEM);
        }
        final ObjectNode answer = JSON.createObjectNode();
        final ArrayNode rows = answer.putArray("rows");
        final String[] lines = printed.toString(StandardCharsets.UTF_8).split("\n");
        final String[] names = lines[0].split("\t");
        for (int row = 1; row < lines.length; row++) {
            final String[] values = lines[row].split("\t");
            final ObjectNode named = rows.addObject();
            for (int column = 0; column < Math.min(names.length, values.length); column++) {
                named.put(names[column].trim(), values[column].trim());
            }
        }
        return answer;
    }
}
