package caughtup;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes an application's state on a thread of its own: the newest, if several wait.
 *
 * <p>What cannot be published is dropped, and said once until something can be again.
 */
final class StatePublisher {
    static final String TOPIC = "application-states";
    private static final long IDLE_SECONDS = 60;
    private static final long ASK_SECONDS = 10;
    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);

    private final FollowerConfig config;
    private final String topic;
    private final String clientId;
    private final BlockingQueue<Supplier<Map<String, Object>>> waiting =
        new ArrayBlockingQueue<>(1);
    private Thread thread;
    private volatile boolean failing;

    StatePublisher(final FollowerConfig config) {
        this.config = config;
        topic = config.topicPrefix + TOPIC;
        clientId = "caughtup-follower-" + config.group;
    }

    /** Takes a state to be published, in place of one that still waits; never waits itself. */
    synchronized void publish(final Supplier<Map<String, Object>> state) {
        waiting.poll();
        waiting.add(state);
        if (thread == null) {
            thread = new Thread(this::run, "caughtup-state-" + config.group);
            thread.setDaemon(true);
            thread.start();
        }
    }

    private synchronized boolean endIfIdle() {
        if (waiting.isEmpty()) {
            thread = null;
            return true;
        }
        return false;
    }

    private void run() {
        KafkaProducer<byte[], byte[]> producer = null;
        do {
            try {
                Supplier<Map<String, Object>> state = waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
                while (state != null) {
                    if (producer == null) {
                        requireTopic();
                        producer = new KafkaProducer<>(
                            config.producer(clientId),
                            new ByteArraySerializer(), new ByteArraySerializer());
                    }
                    send(producer, Json.write(state.get()));
                    state = waiting.poll(IDLE_SECONDS, TimeUnit.SECONDS);
                }
            } catch (final InterruptedException ended) {
                break;
            } catch (final Exception | LinkageError problem) {
                failed(problem);
            }
        } while (!endIfIdle());
        if (producer != null) {
            producer.close(Duration.ZERO);
        }
    }

    /** Asks for the topic first: a producer's own question would have brokers create it. */
    private void requireTopic() throws Exception {
        try (Admin admin = Admin.create(config.connection("admin.", clientId))) {
            admin.describeTopics(List.of(topic)).allTopicNames().get(ASK_SECONDS, TimeUnit.SECONDS);
        } catch (final ExecutionException refused) {
            throw new IllegalStateException(refused.getCause());
        }
    }

    private void send(final KafkaProducer<byte[], byte[]> producer, final String state) {
        final byte[] key = config.group.getBytes(StandardCharsets.UTF_8);
        producer.send(
            new ProducerRecord<>(topic, key, state.getBytes(StandardCharsets.UTF_8)),
            (metadata, problem) -> {
                if (problem == null) {
                    failing = false;
                } else {
                    failed(problem);
                }
            });
    }

    private void failed(final Throwable problem) {
        if (!failing) {
            LOG.warn("caughtup: cannot publish the state of {} to {}: {}", config.group, topic,
                problem.toString());
        }
        failing = true;
    }
}
