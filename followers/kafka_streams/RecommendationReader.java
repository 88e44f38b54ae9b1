package caughtup;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the newest recommendation of one group at hand, read on a thread of its own.
 *
 * <p>The thread starts when it is first asked and ends when nobody asked for long, so that an
 * application that was closed leaves nothing behind.
 */
final class RecommendationReader {
    static final String TOPIC = "recommended-assignments";
    /** Nothing of a recommendation's size should be near this. */
    private static final int MAX_BYTES = 16 << 20;
    private static final String MALFORMED = "the recommendation is malformed: ";
    private static final Duration POLL = Duration.ofMillis(500);
    private static final Duration ASK = Duration.ofSeconds(10);
    private static final long FIRST_RETRY_MS = 1_000;
    private static final long LAST_RETRY_MS = 30_000;
    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);

    /** What was read: a recommendation, or why there is none. */
    private static final class Newest {
        final Recommendation recommendation;
        final String code;
        final String message;
        final long seenNanos;
        /** How far the log had gone beyond it when it was read from the past, in ms. */
        final long olderMs;

        Newest(
            final Recommendation recommendation, final String code, final String message,
            final long seenNanos, final long olderMs) {
            this.recommendation = recommendation;
            this.code = code;
            this.message = message;
            this.seenNanos = seenNanos;
            this.olderMs = olderMs;
        }
    }

    private final FollowerConfig config;
    private final String topic;
    private final byte[] key;
    private final long idleNanos;
    private volatile Newest newest;
    private volatile long askedNanos;
    private Thread thread;
    private String lastFailure;

    RecommendationReader(final FollowerConfig config) {
        this.config = config;
        topic = config.topicPrefix + TOPIC;
        key = config.group.getBytes(StandardCharsets.UTF_8);
        idleNanos = 1_000_000L
            * Math.max(config.patience.maxAgeMs, 4 * config.patience.followUpMs);
    }

    /** Gives what is known now, and never waits. */
    Following.Read read() {
        askedNanos = System.nanoTime();
        startUnlessRunning();
        final Newest now = newest;
        if (now == null) {
            return new Following.Read("reading", topic + " is still being read");
        }
        if (now.recommendation == null) {
            return new Following.Read(now.code, now.message);
        }
        final long ageMs = (System.nanoTime() - now.seenNanos) / 1_000_000;
        return new Following.Read(now.recommendation, Math.max(ageMs, now.olderMs));
    }

    private synchronized void startUnlessRunning() {
        if (thread == null) {
            thread = new Thread(this::run, "caughtup-recommendations-" + config.group);
            thread.setDaemon(true);
            thread.start();
        }
    }

    private synchronized boolean endIfIdle() {
        if (System.nanoTime() - askedNanos < idleNanos) {
            return false;
        }
        newest = null;
        thread = null;
        return true;
    }

    private void run() {
        long retryMs = FIRST_RETRY_MS;
        while (true) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                config.consumer("caughtup-follower-" + config.group),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                final List<TopicPartition> partitions = partitions(consumer);
                if (!partitions.isEmpty()) {
                    retryMs = FIRST_RETRY_MS;
                    follow(consumer, partitions);
                    return;
                }
                failed("there is no topic " + topic);
            } catch (final Exception | LinkageError problem) {
                failed("cannot read " + topic + ": " + problem);
            }
            if (endIfIdle()) {
                return;
            }
            try {
                Thread.sleep(retryMs);
            } catch (final InterruptedException ended) {
                return;
            }
            retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
        }
    }

    private List<TopicPartition> partitions(final KafkaConsumer<byte[], byte[]> consumer) {
        final List<PartitionInfo> found = consumer.partitionsFor(topic, ASK);
        return found == null ? List.of() : found.stream()
            .map(one -> new TopicPartition(topic, one.partition())).collect(Collectors.toList());
    }

    /** Reads from the beginning until nobody asks any more. */
    private void follow(
        final KafkaConsumer<byte[], byte[]> consumer, final List<TopicPartition> partitions) {
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        final Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, ASK);
        final Map<TopicPartition, Long> logTimes = new HashMap<>();
        ConsumerRecord<byte[], byte[]> found = null;
        while (!past(consumer, ends)) {
            for (final ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                final TopicPartition partition =
                    new TopicPartition(record.topic(), record.partition());
                if (Arrays.equals(record.key(), key)) {
                    found = record;
                    // Only what comes after it says how old it is.
                    logTimes.clear();
                }
                logTimes.merge(partition, record.timestamp(), Math::max);
            }
            if (endIfIdle()) {
                return;
            }
        }
        if (found == null) {
            none();
        } else {
            final Long last = logTimes.get(new TopicPartition(topic, found.partition()));
            take(found, last == null ? 0 : Math.max(0, last - found.timestamp()));
        }
        lastFailure = null;
        while (!endIfIdle()) {
            for (final ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                if (Arrays.equals(record.key(), key)) {
                    take(record, 0);
                }
            }
        }
    }

    private static boolean past(
        final KafkaConsumer<byte[], byte[]> consumer, final Map<TopicPartition, Long> ends) {
        final Collection<TopicPartition> partitions = ends.keySet();
        return partitions.stream().allMatch(one -> consumer.position(one, ASK) >= ends.get(one));
    }

    private void take(final ConsumerRecord<byte[], byte[]> record, final long olderMs) {
        if (record.value() == null) {
            none();
            return;
        }
        final long now = System.nanoTime();
        if (record.value().length > MAX_BYTES) {
            newest = new Newest(null, "malformed", MALFORMED + record.value().length + " bytes",
                now, 0);
            return;
        }
        try {
            newest = new Newest(
                Recommendation.read(record.value(), config.group), null, null, now, olderMs);
        } catch (final Json.Malformed malformed) {
            newest = new Newest(null, "malformed", MALFORMED + malformed.getMessage(), now, 0);
        }
    }

    private void none() {
        newest = new Newest(null, "no_recommendation",
            "there is no recommendation for " + config.group, System.nanoTime(), 0);
    }

    /** Remembers why nothing can be read; what was read before stays, and grows old. */
    private void failed(final String message) {
        if (!message.equals(lastFailure)) {
            LOG.warn("caughtup: {}", message);
            lastFailure = message;
        }
        if (newest == null || newest.recommendation == null) {
            newest = new Newest(null, "reader_failed", message, System.nanoTime(), 0);
        }
    }
}
