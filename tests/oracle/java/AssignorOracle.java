import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import oracles.Pipe;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;

/**
 * The published assignors behind a pipe: a scenario a line in, a decision a line out, in the form
 * that `caughtup assign` reads and writes. A scenario that Kafka refuses gives its exception.
 */
public final class AssignorOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> decide(JSON.readTree(line)),
            refused -> JSON.createObjectNode().put("exception", refused.toString()));
    }

    private static ObjectNode decide(final JsonNode scenario) {
        final AssignmentConfigs configs = configs(scenario.get("config"));
        if (scenario.get("assignor").asText().equals("public_sticky")) {
            final ObjectNode answer = JSON.createObjectNode();
            PublicSticky.decide(scenario, configs, AssignorOracle::client, answer);
            return answer;
        }
        final Set<TaskId> tasks = new TreeSet<>();
        final Set<TaskId> stateful = new TreeSet<>();
        for (final Map.Entry<String, JsonNode> task : scenario.get("tasks").properties()) {
            tasks.add(TaskId.parse(task.getKey()));
            if (task.getValue().get("stateful").asBoolean()) {
                stateful.add(TaskId.parse(task.getKey()));
            }
        }
        final Map<ProcessId, ClientState> clients = new TreeMap<>();
        for (final Map.Entry<String, JsonNode> client : scenario.get("clients").properties()) {
            clients.put(new ProcessId(UUID.fromString(client.getKey())), client(client));
        }
        final long start = System.nanoTime();
        final boolean probing = assignor(scenario.get("assignor").asText())
            .assign(clients, tasks, stateful, Racks.of(scenario, configs), configs);
        final double milliseconds = (System.nanoTime() - start) / 1e6;

        final ObjectNode decision = JSON.createObjectNode();
        decision.put("probing_rebalance_needed", probing).put("ms", milliseconds);
        final ObjectNode assigned = decision.putObject("clients");
        clients.forEach((process, state) -> {
            final ObjectNode one = assigned.putObject(process.id().toString());
            write(one.putArray("active"), state.activeTasks());
            write(one.putArray("standby"), state.standbyTasks());
        });
        return decision;
    }

    private static LegacyTaskAssignor assignor(final String name) {
        switch (name) {
            case "high_availability": return new HighAvailabilityTaskAssignor();
            case "sticky": return new LegacyStickyTaskAssignor();
            case "fallback_prior": return new FallbackPriorTaskAssignor();
            default: throw new IllegalArgumentException("no assignor is called " + name);
        }
    }

    private static ClientState client(final Map.Entry<String, JsonNode> entry) {
        final JsonNode client = entry.getValue();
        final Map<TaskId, Long> lags = new TreeMap<>();
        client.get("lags").properties()
            .forEach(lag -> lags.put(TaskId.parse(lag.getKey()), lag.getValue().asLong()));
        return new ClientState(
            read(client.get("previous_active")),
            read(client.get("previous_standby")),
            lags,
            tags(client.path("tags")),
            client.get("capacity").asInt(),
            new ProcessId(UUID.fromString(entry.getKey())));
    }

    private static AssignmentConfigs configs(final JsonNode config) {
        return new AssignmentConfigs(
            config.get("acceptable.recovery.lag").asLong(),
            config.get("max.warmup.replicas").asInt(),
            config.get("num.standby.replicas").asInt(),
            config.get("probing.rebalance.interval.ms").asLong(),
            strings(config.path("rack.aware.assignment.tags")),
            optional(config.path("rack.aware.assignment.traffic_cost")),
            optional(config.path("rack.aware.assignment.non_overlap_cost")),
            config.path("rack.aware.assignment.strategy").asText("none"));
    }

    private static OptionalInt optional(final JsonNode cost) {
        return cost.isInt() ? OptionalInt.of(cost.asInt()) : OptionalInt.empty();
    }

    private static Map<String, String> tags(final JsonNode tags) {
        final Map<String, String> map = new TreeMap<>();
        tags.properties().forEach(tag -> map.put(tag.getKey(), tag.getValue().asText()));
        return map;
    }

    private static List<String> strings(final JsonNode array) {
        final List<String> list = new ArrayList<>();
        array.forEach(one -> list.add(one.asText()));
        return list;
    }

    private static Set<TaskId> read(final JsonNode tasks) {
        final Set<TaskId> set = new TreeSet<>();
        tasks.forEach(task -> set.add(TaskId.parse(task.asText())));
        return set;
    }

    private static void write(final ArrayNode array, final Set<TaskId> tasks) {
        final TaskId[] sorted = tasks.toArray(new TaskId[0]);
        Arrays.sort(sorted);
        for (final TaskId task : sorted) {
            array.add(task.toString());
        }
    }
}
