package org.apache.kafka.connect.runtime.distributed;

import caughtup.TimedPipe;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeAssignor.ClusterAssignment;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Connect's own assignor with a stopwatch, behind a pipe.
 *
 * A line with a group's rounds is kept and answered with "{}". A line "decide" is answered with the
 * decision on the last of them and the milliseconds that performTaskAssignment() alone took, by the
 * clock and of its thread on a processor: without reading what workers sent and writing what they
 * are told. Everything before it, its arguments included, is repeated each time, outside the measured time.
 */
public final class TimedConnectLeader {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(final String[] arguments) throws Exception {
        TimedPipe.answer(loaded -> decide(loaded.get("rounds")));
    }

    private static ObjectNode decide(final JsonNode rounds) {
        final Clock clock = new Clock();
        final IncrementalCooperativeAssignor assignor =
            new IncrementalCooperativeAssignor(new LogContext(), clock, 300_000);
        final ObjectNode answer = JSON.createObjectNode();
        int generation = 0;
        for (final JsonNode round : rounds) {
            clock.milliseconds.set(round.get("time_ms").asLong());
            final ClusterConfigState configured = configured(round.get("connectors"));
            final Map<String, ConnectorsAndTasks> workers = new HashMap<>();
            for (final Map.Entry<String, JsonNode> worker : round.get("workers").properties()) {
                workers.put(worker.getKey(), owned(worker.getValue()));
            }
            final Set<String> names = Set.copyOf(workers.keySet());
            final int last = generation++;

            final long startOfThread = THREADS.getCurrentThreadCpuTime();
            final long start = System.nanoTime();
            final ClusterAssignment decided =
                assignor.performTaskAssignment(configured, last, generation, workers);
            final long end = System.nanoTime();
            final long endOfThread = THREADS.getCurrentThreadCpuTime();

            answer.put("ms", (end - start) / 1e6);
            answer.put("cpu_ms", (endOfThread - startOfThread) / 1e6);
            final ObjectNode decision = answer.putObject("decision");
            decision.put("delay_ms", assignor.delay);
            final ObjectNode told = decision.putObject("workers");
            for (final String name : names) {
                final ObjectNode worker = told.putObject(name);
                write(worker.putArray("assigned"),
                    decided.newlyAssignedConnectors(name), decided.newlyAssignedTasks(name));
                write(worker.putArray("revoked"),
                    decided.newlyRevokedConnectors(name), decided.newlyRevokedTasks(name));
            }
        }
        return answer;
    }

    private static ClusterConfigState configured(final JsonNode connectors) {
        final Map<String, Integer> counts = new HashMap<>();
        final Map<String, Map<String, String>> configs = new HashMap<>();
        for (final Map.Entry<String, JsonNode> connector : connectors.properties()) {
            counts.put(connector.getKey(), connector.getValue().asInt());
            configs.put(connector.getKey(), Map.of());
        }
        return new ClusterConfigState(0, null, counts, configs, Map.of(), Map.of(), Map.of(),
            Map.of(), Map.of(), Set.of(), Set.of());
    }

    private static ConnectorsAndTasks owned(final JsonNode worker) {
        final Set<String> connectors = new LinkedHashSet<>();
        worker.get("connectors").forEach(one -> connectors.add(one.asText()));
        final Set<ConnectorTaskId> tasks = new LinkedHashSet<>();
        worker.get("tasks").forEach(
            one -> tasks.add(new ConnectorTaskId(one.get(0).asText(), one.get(1).asInt())));
        return new ConnectorsAndTasks.Builder().with(connectors, tasks).build();
    }

    private static void write(
        final ArrayNode into, final Collection<String> names, final Collection<ConnectorTaskId> ids
    ) {
        new TreeSet<>(names).forEach(into::add);
        new TreeSet<>(ids).forEach(id -> into.add(id.toString()));
    }

    private static final class Clock implements Time {
        private final AtomicLong milliseconds = new AtomicLong();

        @Override
        public long milliseconds() {
            return milliseconds.get();
        }

        @Override
        public long nanoseconds() {
            return milliseconds.get() * 1_000_000;
        }

        @Override
        public void sleep(final long ms) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void waitObject(final Object on, final Supplier<Boolean> until, final long deadline) {
            throw new UnsupportedOperationException();
        }
    }
}
