package caughtup;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsContext;
import org.apache.kafka.common.metrics.MetricsReporter;

/**
 * Reports how far copies are between rebalances, once {@code metric.reporters} names it.
 *
 * <p>Kafka makes one reporter for a Kafka Streams client and one for each of its consumers,
 * producers and admin clients. The first one's metrics name the process, the stores and the tasks,
 * the restore consumers' say how far each changelog partition is; together they are positions.
 */
public final class PositionReporter implements MetricsReporter {
    private Map<String, ?> configs = Map.of();
    private String clientId = "";
    private StreamsClient streams;
    private RestoreConsumer restore;

    @Override
    public void configure(final Map<String, ?> given) {
        configs = given;
        final Object id = given.get("client.id");
        clientId = id == null ? "" : id.toString();
    }

    @Override
    public void contextChange(final MetricsContext context) {
        final String namespace = context.contextLabels().get(MetricsContext.NAMESPACE);
        if ("kafka.streams".equals(namespace) && streams == null) {
            streams = StreamsClient.start(clientId, new FollowerConfig(configs));
        } else if (clientId.endsWith(RestoreConsumer.SUFFIX) && restore == null) {
            restore = RestoreConsumer.start(clientId);
        }
    }

    @Override
    public void init(final List<KafkaMetric> metrics) {
        metrics.forEach(this::metricChange);
    }

    @Override
    public void metricChange(final KafkaMetric metric) {
        if (streams != null) {
            streams.add(metric);
        } else if (restore != null) {
            restore.add(metric);
        }
    }

    @Override
    public void metricRemoval(final KafkaMetric metric) {
        if (streams != null) {
            streams.remove(metric.metricName());
        } else if (restore != null) {
            restore.remove(metric.metricName());
        }
    }

    @Override
    public void close() {
        if (streams != null) {
            streams.close();
        } else if (restore != null) {
            restore.close();
        }
    }
}
