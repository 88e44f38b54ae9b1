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
import org.apache.kafka.common.ClusterResource;
import org.apache.kafka.common.ClusterResourceListener;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps the newest recommendation of one group at hand, read on a thread of its own.
 *
 * <p>The thread starts when it is first asked and ends when no caller has asked for long, so that an
 * application that was closed leaves nothing behind. Whatever befalls it meanwhile, it says so and
 * tries again; after an Error, such as memory that ran out over a record, from the log's end on.
 */
final class RecommendationReader {
    static final String TOPIC = "recommended-assignments";
    private static final Duration POLL = Duration.ofMillis(500);
    private static final Duration ASK = Duration.ofSeconds(10);
    private static final long FIRST_RETRY_MS = 1_000;
    private static final long LAST_RETRY_MS = 30_000;
    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);
    /** Made beforehand: there may be no memory to say anything else. */
    private static final Newest LOST = new Newest(
        new Rules.Objection("reader_failed", "recommendations cannot be read"), 0, 0);

    /** What was read: a recommendation, or the objection why there is none. */
    private static final class Newest {
        final Object read;
        final long seenNanos;
        /** How far the log had gone beyond it when it was read from the past, in ms. */
        final long olderMs;

        Newest(final Object read, final long seenNanos, final long olderMs) {
            this.read = read;
            this.seenNanos = seenNanos;
            this.olderMs = olderMs;
        }
    }

    /** Learns the cluster's id, for which signatures are good, before any record is read. */
    private static final class ValueReader extends ByteArrayDeserializer
        implements ClusterResourceListener {
        volatile String cluster = "";

        @Override
        public void onUpdate(final ClusterResource resource) {
            cluster = resource.clusterId() == null ? "" : resource.clusterId();
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
    private long retryMs = FIRST_RETRY_MS;
    private boolean fromEnd;

    RecommendationReader(final FollowerConfig config) {
        this.config = config;
        topic = config.topicPrefix + TOPIC;
        key = config.group.getBytes(StandardCharsets.UTF_8);
        idleNanos = 1_000_000L
            * Math.max(config.patience.maxAgeMs, 4 * config.patience.followUpMs);
    }

    /** Returns what is known now, and never waits. */
    Following.NewestRecommendation read() {
        askedNanos = System.nanoTime();
        startUnlessRunning();
        final Newest now = newest;
        if (now == null) {
            return new Following.NewestRecommendation("reading", topic + " is still being read");
        }
        if (now.read instanceof Rules.Objection) {
            return new Following.NewestRecommendation((Rules.Objection) now.read);
        }
        final long ageMs = (System.nanoTime() - now.seenNanos) / 1_000_000;
        return new Following.NewestRecommendation((Recommendation) now.read, Math.max(ageMs, now.olderMs));
    }

    private synchronized void startUnlessRunning() {
        if (thread != null && thread.isAlive()) {
            return;
        }
        try {
            thread = new Thread(this::run, "caughtup-recommendations-" + config.group);
            thread.setDaemon(true);
            thread.start();
        } catch (final OutOfMemoryError noThread) {
            thread = null;
            failed(noThread);
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
        while (true) {
            try {
                if (followed() || endIfIdle()) {
                    return;
                }
                Thread.sleep(retryMs);
            } catch (final InterruptedException ended) {
                return;
            } catch (final Throwable problem) {
                failed(problem);
            }
            retryMs = Math.min(2 * retryMs, LAST_RETRY_MS);
        }
    }

    /** Connects, and reads until no caller asks any more; returns whether it got so far. */
    private boolean followed() {
        final ValueReader values = new ValueReader();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            config.consumer("caughtup-follower-" + config.group),
            new ByteArrayDeserializer(), values)) {
            final List<TopicPartition> partitions = partitions(consumer);
            if (!partitions.isEmpty()) {
                follow(consumer, partitions, values);
                return true;
            }
            failed("there is no topic " + topic);
        } catch (final Throwable problem) {
            failed(problem);
        }
        return false;
    }

    private List<TopicPartition> partitions(final KafkaConsumer<byte[], byte[]> consumer) {
        final List<PartitionInfo> found = consumer.partitionsFor(topic, ASK);
        return found == null ? List.of() : found.stream()
            .map(one -> new TopicPartition(topic, one.partition())).collect(Collectors.toList());
    }

    /** Reads from the beginning until no caller asks any more. */
    private void follow(
        final KafkaConsumer<byte[], byte[]> consumer, final List<TopicPartition> partitions,
        final ValueReader values) {
        final boolean skipping = fromEnd;
        consumer.assign(partitions);
        if (skipping) {
            consumer.seekToEnd(partitions);
        } else {
            consumer.seekToBeginning(partitions);
        }
        final Map<TopicPartition, Long> ends = consumer.endOffsets(partitions, ASK);
        final Map<Integer, Long> logTimes = new HashMap<>();
        ArrivedRecord found = null;
        while (!past(consumer, ends)) {
            for (final ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                if (Arrays.equals(record.key(), key)) {
                    found = new ArrivedRecord(record);
                    // Only what comes after it says how old it is.
                    logTimes.clear();
                }
                logTimes.merge(record.partition(), record.timestamp(), Math::max);
            }
            if (endIfIdle()) {
                return;
            }
        }
        if (found != null) {
            remember(found, values, Math.max(0, logTimes.get(found.partition) - found.timestamp));
        } else if (!skipping) {
            newest = new Newest(new Rules.Objection("no_recommendation",
                "there is no recommendation for " + config.group), System.nanoTime(), 0);
        }
        fromEnd = false;
        retryMs = FIRST_RETRY_MS;
        lastFailure = null;
        while (!endIfIdle()) {
            for (final ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                if (Arrays.equals(record.key(), key)) {
                    remember(new ArrivedRecord(record), values, 0);
                }
            }
        }
    }

    private static boolean past(
        final KafkaConsumer<byte[], byte[]> consumer, final Map<TopicPartition, Long> ends) {
        final Collection<TopicPartition> partitions = ends.keySet();
        return partitions.stream().allMatch(one -> consumer.position(one, ASK) >= ends.get(one));
    }

    private void remember(final ArrivedRecord record, final ValueReader values, final long olderMs) {
        newest = new Newest(record.read(config, values.cluster), System.nanoTime(), olderMs);
    }

    private void failed(final Throwable problem) {
        try {
            fromEnd |= problem instanceof Error;
            failed("cannot read " + topic + ": " + problem);
        } catch (final VirtualMachineError again) {
            newest = LOST;
        }
    }

    /** Remembers why nothing can be read; what was read before stays, and grows old. */
    private void failed(final String message) {
        if (!message.equals(lastFailure)) {
            LOG.warn("caughtup: {}", message);
            lastFailure = message;
        }
        if (newest == null || newest.read instanceof Rules.Objection) {
            newest = new Newest(
                new Rules.Objection("reader_failed", message), System.nanoTime(), 0);
        }
    }
}
