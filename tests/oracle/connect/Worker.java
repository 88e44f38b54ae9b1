package org.apache.kafka.connect.runtime.distributed;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.ConfigBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** A worker without a network, whose clock and generations are told. */
final class Worker extends WorkerCoordinator {
    private final String name;
    private final AtomicLong clock;
    private int generation;
    private int completed = -1;

    Worker(final String name, final int maxDelay) {
        this(name, maxDelay, new AtomicLong());
    }

    private Worker(final String name, final int maxDelay, final AtomicLong clock) {
        super(
            new GroupRebalanceConfig(10_000, 60_000, 3_000, "connect", Optional.empty(), "", 100, 1_000),
            new LogContext(), null, new Metrics(), "connect", new Clock(clock), "http://w:8083/",
            configStorage(), new Nobody(), ConnectProtocolCompatibility.SESSIONED, maxDelay);
        this.name = name;
        this.clock = clock;
    }

    /** Join a round: the last one counts as completed unless it is said to have failed. */
    void begin(final JsonNode round) {
        clock.set(round.get("time_ms").asLong());
        completed = round.path("previous_generation_failed").asBoolean() ? -2 : generation;
        generation++;
    }

    /** Return what a worker sends next that had this assignment, and is told that one. */
    static byte[] next(
        final JsonNode round,
        final String protocol,
        final String name,
        final ByteBuffer owned,
        final ByteBuffer told
    ) {
        final Worker worker = new Worker(name, 0);
        if (owned != null) {
            worker.onJoinComplete(1, name, protocol, owned);
        }
        worker.onJoinComplete(2, name, protocol, told.duplicate());
        // What an eager worker runs is in no subscription of its own protocol.
        final String wanted = protocol.equals("default") ? "sessioned" : protocol;
        return worker.metadata().find(wanted).metadata();
    }

    @Override
    public int generationId() {
        return generation;
    }

    @Override
    public int lastCompletedGenerationId() {
        return completed;
    }

    @Override
    public String memberId() {
        return name;
    }

    private static ConfigBackingStore configStorage() {
        return (ConfigBackingStore) Proxy.newProxyInstance(
            Worker.class.getClassLoader(),
            new Class<?>[] {ConfigBackingStore.class},
            (store, method, arguments) -> ClusterConfigState.EMPTY);
    }

    private static final class Nobody implements WorkerRebalanceListener {
        @Override
        public void onAssigned(final ExtendedAssignment assignment, final int generation) { }

        @Override
        public void onRevoked(
            final String leader, final Collection<String> names, final Collection<ConnectorTaskId> ids
        ) { }

        @Override
        public void onPollTimeoutExpiry() { }
    }

    private static final class Clock implements Time {
        private final AtomicLong milliseconds;

        Clock(final AtomicLong milliseconds) {
            this.milliseconds = milliseconds;
        }

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
