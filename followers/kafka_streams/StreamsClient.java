package caughtup;

import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.KafkaMetric;

/**
 * A Kafka Streams client's stores by task, as its metrics name them, and a thread that publishes
 * how far those are that are restored: what changed each interval, everything each minute.
 */
final class StreamsClient implements Runnable {
    static final String TOPIC = "task-positions";
    private static final long REPEAT_NANOS = 60_000_000_000L;
    private static final String RESTORING = "active-restoring-tasks";
    private static final Duration CLOSE = Duration.ofSeconds(2);

    private final String clientId;
    private final FollowerConfig config;
    /** Task, then store, then the names of the metrics that it has. */
    private final Map<String, Map<String, Set<MetricName>>> stores = new ConcurrentHashMap<>();
    /** How many actives each state updater restores, by its thread's name. */
    private final Map<String, KafkaMetric> restoring = new ConcurrentHashMap<>();
    /** Only standbys have metrics of updates. */
    private final Set<String> standbys = ConcurrentHashMap.newKeySet();
    private final Thread thread;
    private volatile String process;
    private volatile boolean closed;
    /** What was sent last by key, without its time. */
    private final Map<String, String> sent = new HashMap<>();

    private StreamsClient(final String clientId, final FollowerConfig config) {
        this.clientId = clientId;
        this.config = config;
        thread = new Thread(this, "caughtup-positions-" + clientId);
        thread.setDaemon(true);
    }

    static StreamsClient start(final String clientId, final FollowerConfig config) {
        final StreamsClient client = new StreamsClient(clientId, config);
        client.thread.start();
        return client;
    }

    void add(final KafkaMetric metric) {
        final MetricName name = metric.metricName();
        final Map<String, String> tags = name.tags();
        if (name.name().equals(RESTORING)) {
            restoring.put(tags.getOrDefault("thread-id", ""), metric);
        }
        final String task = tags.get("task-id");
        if (tags.containsKey("process-id")) {
            process = tags.get("process-id");
        } else if (task != null && name.name().equals("update-total")) {
            standbys.add(task);
        } else if (task != null && store(tags) != null) {
            stores.computeIfAbsent(task, any -> new ConcurrentHashMap<>())
                .computeIfAbsent(store(tags), any -> ConcurrentHashMap.newKeySet()).add(name);
        }
    }

    void remove(final MetricName name) {
        final String task = name.tags().get("task-id");
        if (task != null && name.name().equals("update-total")) {
            standbys.remove(task);
        } else if (task != null && store(name.tags()) != null) {
            final Map<String, Set<MetricName>> of = stores.getOrDefault(task, Map.of());
            final Set<MetricName> names = of.get(store(name.tags()));
            if (names != null && names.remove(name) && names.isEmpty()) {
                of.remove(store(name.tags()));
            }
        }
    }

    private static String store(final Map<String, String> tags) {
        for (final Map.Entry<String, String> tag : tags.entrySet()) {
            if (tag.getKey().endsWith("-state-id")) {
                return tag.getValue();
            }
        }
        return null;
    }

    @Override
    public void run() {
        final TopicProducer producer = new TopicProducer(config, TOPIC);
        long repeatedNanos = System.nanoTime();
        try {
            while (!closed) {
                Thread.sleep(config.positionsIntervalMs);
                final boolean repeat = System.nanoTime() - repeatedNanos >= REPEAT_NANOS;
                repeatedNanos = repeat ? System.nanoTime() : repeatedNanos;
                publish(producer, positions(), repeat);
            }
        } catch (final InterruptedException ended) {
            // By close; the positions are withdrawn below.
        }
        try {
            publish(producer, Map.of(), false);
        } catch (final InterruptedException again) {
            Thread.currentThread().interrupt();
        }
        producer.close(CLOSE);
    }

    /** Withdraws the positions, and waits a little until that is sent: the JVM may end next. */
    void close() {
        closed = true;
        thread.interrupt();
        try {
            thread.join(2 * CLOSE.toMillis());
        } catch (final InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void publish(
        final TopicProducer producer, final Map<String, Map<String, Object>> positions,
        final boolean repeat) throws InterruptedException {
        for (final Map.Entry<String, Map<String, Object>> position : positions.entrySet()) {
            final String value = Json.write(position.getValue());
            if (repeat || !value.equals(sent.get(position.getKey()))) {
                position.getValue().put("at_ms", System.currentTimeMillis());
                if (producer.send(position.getKey(), Json.write(position.getValue()))) {
                    sent.put(position.getKey(), value);
                }
            }
        }
        for (final String key : List.copyOf(sent.keySet())) {
            if (!positions.containsKey(key) && producer.send(key, null)) {
                sent.remove(key);
            }
        }
    }

    /** The copies that are restored now, by their records' keys. */
    private Map<String, Map<String, Object>> positions() {
        final Map<String, Map<String, Object>> positions = new TreeMap<>();
        stores.forEach((task, of) -> {
            final int partition = Integer.parseInt(task.substring(task.lastIndexOf('_') + 1));
            final Map<String, Long> lags = new TreeMap<>();
            final Map<String, Long> leads = new TreeMap<>();
            for (final String store : of.keySet()) {
                final String topic = config.group + '-' + store + "-changelog";
                final RestoreConsumer consumer = RestoreConsumer.of(clientId, topic, partition);
                if (consumer != null && (standbys.contains(task) || restores(consumer))) {
                    lags.put(topic, consumer.lag(topic, partition));
                    leads.put(topic, consumer.lead(topic, partition));
                }
            }
            if (process != null && !lags.isEmpty()) {
                positions.put(Json.write(List.of(config.group, process, task)),
                    position(task, lags, leads));
            }
        });
        return positions;
    }

    /** An idle state updater doesn't poll, so its consumer's metrics still have what is done. */
    private boolean restores(final RestoreConsumer consumer) {
        final KafkaMetric actives = restoring.get(consumer.thread());
        final Object count = actives == null ? null : actives.metricValue();
        return !(count instanceof Number) || ((Number) count).longValue() > 0;
    }

    private Map<String, Object> position(
        final String task, final Map<String, Long> lags, final Map<String, Long> leads) {
        final Map<String, Object> position = new LinkedHashMap<>();
        position.put("schema", 1);
        position.put("group", config.group);
        position.put("process", process);
        position.put("client_id", clientId);
        position.put("task", task);
        position.put("role", standbys.contains(task) ? "standby" : "restoring");
        position.put("lags", lags);
        position.put("leads", leads);
        if (!lags.containsValue(null)) {
            position.put("lag", lags.values().stream().mapToLong(lag -> lag).sum());
        }
        return position;
    }
}
