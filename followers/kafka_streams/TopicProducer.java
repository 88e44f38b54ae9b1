package caughtup;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends to one topic, which it never creates, and connects when there is something to send.
 *
 * <p>What cannot be sent is dropped, and said once until something can be again. For one thread.
 */
final class TopicProducer {
    private static final long ASK_SECONDS = 10;
    private static final Logger LOG = LoggerFactory.getLogger(TopicProducer.class);

    private final FollowerConfig config;
    private final String topic;
    private final String clientId;
    private KafkaProducer<byte[], byte[]> producer;
    private volatile boolean failing;

    TopicProducer(final FollowerConfig config, final String topic) {
        this.config = config;
        this.topic = config.topicPrefix + topic;
        clientId = "caughtup-" + topic + '-' + config.group;
    }

    /** Sends a record, whose value is null for a tombstone. Returns whether it is on its way. */
    boolean send(final String key, final String value) throws InterruptedException {
        try {
            if (producer == null) {
                requireTopic();
                producer = new KafkaProducer<>(config.producer(clientId),
                    new ByteArraySerializer(), new ByteArraySerializer());
            }
            producer.send(new ProducerRecord<>(topic, bytes(key), bytes(value)),
                (metadata, problem) -> {
                    if (problem == null) {
                        failing = false;
                    } else {
                        failed(problem);
                    }
                });
            return true;
        } catch (final ExecutionException refused) {
            failed(refused.getCause());
        } catch (final InterruptedException interrupted) {
            throw interrupted;
        } catch (final InterruptException interrupted) {
            // It has set the flag again, in which nothing could be sent any more.
            Thread.interrupted();
            throw new InterruptedException();
        } catch (final Exception | LinkageError problem) {
            failed(problem);
        }
        return false;
    }

    /** Waits that long for what is on its way; the next record opens a new connection. */
    void close(final Duration patience) {
        if (producer != null) {
            producer.close(patience);
            producer = null;
        }
    }

    /** Asks for the topic first: a producer's own question would have brokers create it. */
    private void requireTopic() throws Exception {
        try (Admin admin = Admin.create(config.connection("admin.", clientId))) {
            admin.describeTopics(List.of(topic)).allTopicNames().get(ASK_SECONDS, TimeUnit.SECONDS);
        }
    }

    private void failed(final Throwable problem) {
        if (!failing) {
            LOG.warn("caughtup: cannot send to {}: {}", topic, problem.toString());
        }
        failing = true;
    }

    private static byte[] bytes(final String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }
}
