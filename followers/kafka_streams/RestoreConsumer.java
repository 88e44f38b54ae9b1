package caughtup;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;

/** A restore consumer's partitions, as its metrics have them. */
final class RestoreConsumer {
    /** What the client ids of restore consumers end with, after their thread's name. */
    static final String SUFFIX = "-restore-consumer";
    /** Registered as soon as a partition is assigned, and removed when it no longer is. */
    private static final String ASSIGNED = "preferred-read-replica";
    /** Registered with a partition's first records; absent while nothing was fetched. */
    private static final String LAG = "records-lag";
    private static final String LEAD = "records-lead";
    private static final Map<String, RestoreConsumer> ALL = new ConcurrentHashMap<>();

    private final String clientId;
    private final Map<String, KafkaMetric> metrics = new ConcurrentHashMap<>();

    private RestoreConsumer(final String clientId) {
        this.clientId = clientId;
    }

    static RestoreConsumer start(final String clientId) {
        final RestoreConsumer consumer = new RestoreConsumer(clientId);
        ALL.put(clientId, consumer);
        return consumer;
    }

    /** Finds the restore consumer of a Streams client that a partition is assigned to, or null. */
    static RestoreConsumer of(
        final String streamsClientId, final String topic, final int partition) {
        for (final RestoreConsumer consumer : ALL.values()) {
            final String id = consumer.clientId;
            if ((id.startsWith(streamsClientId + "-StateUpdater-")
                || id.startsWith(streamsClientId + "-StreamThread-"))
                && consumer.metrics.containsKey(key(ASSIGNED, topic, partition))) {
                return consumer;
            }
        }
        return null;
    }

    /** The name of the thread that polls it. */
    String thread() {
        return clientId.substring(0, clientId.length() - SUFFIX.length());
    }

    /** How far behind the end the last fetch was, in offsets; null if there was none. */
    Long lag(final String topic, final int partition) {
        return value(LAG, topic, partition);
    }

    /** How far beyond the log's start the last fetch was, in offsets; null if there was none. */
    Long lead(final String topic, final int partition) {
        return value(LEAD, topic, partition);
    }

    void add(final KafkaMetric metric) {
        final String key = key(metric.metricName());
        if (key != null) {
            metrics.put(key, metric);
        }
    }

    void remove(final MetricName name) {
        final String key = key(name);
        if (key != null) {
            metrics.remove(key);
        }
    }

    void close() {
        ALL.remove(clientId, this);
    }

    private Long value(final String name, final String topic, final int partition) {
        final KafkaMetric metric = metrics.get(key(name, topic, partition));
        final Object value = metric == null ? null : metric.metricValue();
        return value instanceof Double && !((Double) value).isNaN() && (Double) value >= 0
            ? Long.valueOf(((Double) value).longValue()) : null;
    }

    private static String key(final MetricName name) {
        final String topic = name.tags().get("topic");
        final String partition = name.tags().get("partition");
        final boolean ours = name.name().equals(LAG) || name.name().equals(LEAD)
            || name.name().equals(ASSIGNED);
        return ours && topic != null && partition != null
            ? name.name() + ' ' + undotted(topic) + ' ' + partition : null;
    }

    private static String key(final String name, final String topic, final int partition) {
        return name + ' ' + undotted(topic) + ' ' + partition;
    }

    /** Kafka up to 4.0 writes topics so in metrics; later ones register both ways. */
    private static String undotted(final String topic) {
        return topic.replace('.', '_');
    }
}
