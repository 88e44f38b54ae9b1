import caughtup.TimedPipe;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyStickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.LegacyTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/**
 * Kafka's own assignors with a stopwatch, behind a pipe.
 *
 * A line with a scenario, as `caughtup assign` reads it but without racks and client tags, is kept
 * and answered with "{}". A line "decide" is answered with the decision on that scenario and the
 * milliseconds that assign() alone took, by the clock and of its thread on a processor (without
 * the JVM's own threads). Its arguments are made again each time, outside the measured time.
 */
public final class TimedAssignor {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(final String[] arguments) throws Exception {
        TimedPipe.answer(TimedAssignor::decide);
    }

    private static ObjectNode decide(final JsonNode scenario) {
        final Map<String, TaskId> tasks = new TreeMap<>();
        final Set<TaskId> stateful = new TreeSet<>();
        for (final Map.Entry<String, JsonNode> task : scenario.get("tasks").properties()) {
            final TaskId id = TaskId.parse(task.getKey());
            tasks.put(task.getKey(), id);
            if (task.getValue().get("stateful").asBoolean()) {
                stateful.add(id);
            }
        }
        final Map<ProcessId, ClientState> clients = new TreeMap<>();
        for (final Map.Entry<String, JsonNode> client : scenario.get("clients").properties()) {
            final ProcessId process = new ProcessId(UUID.fromString(client.getKey()));
            clients.put(process, client(process, client.getValue(), tasks));
        }
        final JsonNode config = scenario.get("config");
        final AssignmentConfigs configs = new AssignmentConfigs(
            config.get("acceptable.recovery.lag").asLong(),
            config.get("max.warmup.replicas").asInt(),
            config.get("num.standby.replicas").asInt(),
            config.get("probing.rebalance.interval.ms").asLong(),
            List.of());
        // With configs whose strategy is "none" it finds itself disabled and looks at nothing else.
        final RackAwareTaskAssignor racks = new RackAwareTaskAssignor(
            Cluster.empty(), Map.of(), Map.of(), Map.of(), Map.of(), null, configs, Time.SYSTEM);
        final LegacyTaskAssignor assignor = assignor(scenario.get("assignor").asText());
        final Set<TaskId> all = new TreeSet<>(tasks.values());

        final long startOfThread = THREADS.getCurrentThreadCpuTime();
        final long start = System.nanoTime();
        final boolean probing = assignor.assign(clients, all, stateful, racks, configs);
        final long end = System.nanoTime();
        final long endOfThread = THREADS.getCurrentThreadCpuTime();

        final ObjectNode answer = JSON.createObjectNode();
        answer.put("ms", (end - start) / 1e6).put("cpu_ms", (endOfThread - startOfThread) / 1e6);
        final ObjectNode decision = answer.putObject("decision");
        decision.put("probing_rebalance_needed", probing);
        final ObjectNode assigned = decision.putObject("clients");
        clients.forEach((process, state) -> {
            final ObjectNode one = assigned.putObject(process.id().toString());
            write(one.putArray("active"), state.activeTasks());
            write(one.putArray("standby"), state.standbyTasks());
        });
        return answer;
    }

    private static LegacyTaskAssignor assignor(final String name) {
        switch (name) {
            case "high_availability": return new HighAvailabilityTaskAssignor();
            case "sticky": return new LegacyStickyTaskAssignor();
            case "fallback_prior": return new FallbackPriorTaskAssignor();
            default: throw new IllegalArgumentException("no assignor is called " + name);
        }
    }

    private static ClientState client(
            final ProcessId process, final JsonNode client, final Map<String, TaskId> tasks) {
        final Map<TaskId, Long> lags = new TreeMap<>();
        client.get("lags").properties()
            .forEach(lag -> lags.put(tasks.get(lag.getKey()), lag.getValue().asLong()));
        return new ClientState(
            read(client.get("previous_active"), tasks),
            read(client.get("previous_standby"), tasks),
            lags,
            Map.of(),
            client.get("capacity").asInt(),
            process);
    }

    private static Set<TaskId> read(final JsonNode names, final Map<String, TaskId> tasks) {
        final Set<TaskId> set = new TreeSet<>();
        names.forEach(name -> set.add(tasks.get(name.asText())));
        return set;
    }

    private static void write(final ArrayNode array, final Set<TaskId> tasks) {
        new TreeSet<>(tasks).forEach(task -> array.add(task.toString()));
    }
}
