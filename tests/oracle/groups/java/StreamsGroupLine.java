package oracles;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** A streams group on a line of `caughtup assign`, without anything of Kafka's. */
final class StreamsGroupLine {
    static final ObjectMapper JSON = new ObjectMapper();
    final int standbys;
    final List<String> subtopologies = new ArrayList<>();
    final Map<String, JsonNode> members = new LinkedHashMap<>();
    private final JsonNode described;
    private final ObjectNode decision = JSON.createObjectNode();

    StreamsGroupLine(final String line) throws Exception {
        final JsonNode group = JSON.readTree(line);
        standbys = group.path("config").path("num.standby.replicas").asInt(0);
        described = group.get("subtopologies");
        described.fieldNames().forEachRemaining(subtopologies::add);
        group.get("members").fields().forEachRemaining(
            entry -> members.put(entry.getKey(), entry.getValue()));
    }

    int tasks(final String subtopology) {
        return described.get(subtopology).get("tasks").asInt();
    }

    boolean stateful(final String subtopology) {
        return described.get(subtopology).get("stateful").asBoolean();
    }

    /** A member's tasks of one role: numbers by subtopology. */
    static Map<String, Set<Integer>> tasks(final JsonNode member, final String role) {
        final Map<String, Set<Integer>> found = new HashMap<>();
        member.path(role).forEach(task -> {
            final String[] parts = task.asText().split("_");
            found.computeIfAbsent(parts[0], absent -> new HashSet<>())
                .add(Integer.parseInt(parts[1]));
        });
        return found;
    }

    static Map<String, Map<Integer, Long>> offsets(final JsonNode member) {
        final Map<String, Map<Integer, Long>> found = new HashMap<>();
        member.path("offsets").fields().forEachRemaining(entry -> {
            final String[] parts = entry.getKey().split("_");
            found.computeIfAbsent(parts[0], absent -> new HashMap<>())
                .put(Integer.parseInt(parts[1]), entry.getValue().asLong());
        });
        return found;
    }

    void assigned(
            final String member, final Map<String, Set<Integer>> active,
            final Map<String, Set<Integer>> standby) {
        final ObjectNode own = decision.putObject(member);
        write(own.putArray("active"), active);
        write(own.putArray("standby"), standby);
        own.putArray("warmup");
    }

    Object answer() {
        final ObjectNode whole = JSON.createObjectNode();
        whole.set("members", decision);
        return whole;
    }

    private static void write(final ArrayNode into, final Map<String, Set<Integer>> tasks) {
        final Map<Integer, Set<Integer>> sorted = new TreeMap<>();
        tasks.forEach((subtopology, numbers) ->
            sorted.put(Integer.parseInt(subtopology), new TreeSet<>(numbers)));
        sorted.forEach((subtopology, numbers) ->
            numbers.forEach(number -> into.add(subtopology + "_" + number)));
    }
}
