package caughtup;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes an application's state on a thread of its own: the newest, if several wait.
 *
 * <p>The thread ends when there was nothing for long, so that an application that was closed
 * leaves nothing behind.
 */
final class StatePublisher {
    static final String TOPIC = "application-states";
    private static final long IDLE_SECONDS = 60;
    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);

    private final FollowerConfig config;
    private final BlockingQueue<Supplier<Map<String, Object>>> waiting =
        new ArrayBlockingQueue<>(1);
    private Thread thread;

    StatePublisher(final FollowerConfig config) {
        this.config = config;
    }

    /** Queues a state in place of one that still waits; never waits itself. */
    synchronized void publish(final Supplier<Map<String, Object>> state) {
        waiting.poll();
        waiting.add(state);
        if (thread == null || !thread.isAlive()) {
            try {
                thread = new Thread(this::run, "caughtup-state-" + config.group);
                thread.setDaemon(true);
                thread.start();
            } catch (final OutOfMemoryError noThread) {
                // The rebalance goes on all the same; the next one's state is published with it.
                thread = null;
            }
        }
    }

    private synchronized boolean endIfIdle() {
        if (waiting.isEmpty()) {
            thread = null;
            return true;
        }
        return false;
    }

    private void send(final TopicProducer producer, final Supplier<Map<String, Object>> state)
        throws InterruptedException {
        try {
            producer.send(config.group, Json.write(state.get()));
        } catch (final RuntimeException | LinkageError | VirtualMachineError problem) {
            LOG.warn("caughtup: the state of {} is not published: {}", config.group, problem.toString());
        }
    }

    private void run() {
        final TopicProducer producer = new TopicProducer(config, TOPIC);
        try {
            while (true) {
                final Supplier<Map<String, Object>> state =
                    waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
                if (state != null) {
                    send(producer, state);
                } else if (endIfIdle()) {
                    break;
                }
            }
        } catch (final InterruptedException ended) {
            // No caller waits for the remaining records.
        }
        producer.close(Duration.ofSeconds(1));
    }
}
