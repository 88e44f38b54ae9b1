package caughtup;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The configs that a follower reads from those of its application.
 *
 * <p>A config that cannot be read is named in a warning and has its default: a rebalance does not
 * fail over it. The clients connect as the application's own do, with its security.
 */
final class FollowerConfig {
    static final String TOPIC_PREFIX = "caughtup.topic.prefix";
    static final String FOLLOW_UP_MS = "caughtup.follow.up.ms";
    static final String FOLLOW_UPS = "caughtup.follow.ups";
    static final String MAX_AGE_MS = "caughtup.recommendation.max.age.ms";
    static final String POSITIONS_INTERVAL_MS = "caughtup.positions.interval.ms";
    static final String SIGNING_KEY_FILE = "caughtup.signing.key.file";

    private static final Logger LOG = LoggerFactory.getLogger(FollowingTaskAssignor.class);
    private static final long LONGEST_MS = 7L * 24 * 60 * 60 * 1000;
    /** Connection and security are what all of Kafka's clients have in common. */
    private static final Set<String> CONNECTION = AdminClientConfig.configNames();
    private static final int MAX_REQUEST_BYTES = 64 << 20;
    /** Of a batch alone a broker sends all. */
    private static final int MAX_FETCH_BYTES = 1 << 20;

    final String topicPrefix;
    final Following.Patience patience;
    final long positionsIntervalMs;
    /** Where the keys are that recommendations have to be signed with; null if they need not be. */
    final String signingKeyFile;
    /** The application's name, which is its group's; null for a client without it. */
    final String group;
    private final Map<String, ?> configs;

    FollowerConfig(final Map<String, ?> configs) {
        this.configs = configs;
        final Object prefix = configs.get(TOPIC_PREFIX);
        topicPrefix = prefix == null ? "caughtup-" : prefix.toString();
        patience = new Following.Patience(
            number(FOLLOW_UP_MS, 5_000, 100, LONGEST_MS),
            number(MAX_AGE_MS, 15 * 60_000, 0, LONGEST_MS),
            number(FOLLOW_UPS, 3, 0, 1_000_000));
        positionsIntervalMs = number(POSITIONS_INTERVAL_MS, 5_000, 100, LONGEST_MS);
        final Object file = configs.get(SIGNING_KEY_FILE);
        signingKeyFile = file == null || file.toString().isBlank() ? null : file.toString().trim();
        final Object id = configs.get("application.id");
        group = id == null ? null : id.toString();
    }

    /** The key of a follower: one application in one cluster, with the same configs. */
    List<String> identity() {
        return List.of(text(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG), text("application.id"),
            topicPrefix, patience.followUpMs + " " + patience.maxAgeMs + " " + patience.followUps,
            text(SIGNING_KEY_FILE));
    }

    /** The ids that the client's own member ids begin with. */
    List<String> memberIdPrefixes() {
        final Object instance = configs.get(CommonClientConfigs.GROUP_INSTANCE_ID_CONFIG);
        final String client = text(CommonClientConfigs.CLIENT_ID_CONFIG) + "-";
        return instance == null ? List.of(client) : List.of(instance + "-", client);
    }

    Map<String, Object> consumer(final String clientId) {
        final Map<String, Object> consumer = connection("main.consumer.", clientId);
        consumer.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        consumer.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        consumer.put(ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG, false);
        consumer.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        // Of what is sent only one record is there decompressed at a time, however large others are.
        consumer.put(ConsumerConfig.FETCH_MAX_BYTES_CONFIG, MAX_FETCH_BYTES);
        consumer.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, MAX_FETCH_BYTES);
        consumer.put(ConsumerConfig.MAX_POLL_RECORDS_CONFIG, 1);
        return consumer;
    }

    Map<String, Object> producer(final String clientId) {
        final Map<String, Object> producer = connection("producer.", clientId);
        // No caller waits for it; idempotence would need more permissions than WRITE.
        producer.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, false);
        producer.put(ProducerConfig.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION, 1);
        producer.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, 10_000);
        producer.put(ProducerConfig.BUFFER_MEMORY_CONFIG, (long) MAX_REQUEST_BYTES);
        producer.put(ProducerConfig.LINGER_MS_CONFIG, 0);
        // Of the codecs the one that needs no native library; brokers bound what it leaves.
        producer.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "gzip");
        producer.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, MAX_REQUEST_BYTES);
        return producer;
    }

    /** Connection and security, of which a prefix's own go first. */
    Map<String, Object> connection(final String prefix, final String clientId) {
        final Map<String, Object> connection = new HashMap<>();
        configs.forEach((name, value) -> {
            if (value != null && CONNECTION.contains(name)) {
                connection.put(name, value);
            }
        });
        configs.forEach((name, value) -> {
            if (value != null && name.startsWith(prefix)
                && CONNECTION.contains(name.substring(prefix.length()))) {
                connection.put(name.substring(prefix.length()), value);
            }
        });
        connection.put(CommonClientConfigs.CLIENT_ID_CONFIG, clientId);
        // The application's reporters are about the application, and one of them could be ours.
        connection.put(CommonClientConfigs.METRIC_REPORTER_CLASSES_CONFIG, "");
        connection.put(CommonClientConfigs.ENABLE_METRICS_PUSH_CONFIG, false);
        return connection;
    }

    private String text(final String name) {
        final Object value = configs.get(name);
        return value == null ? "" : value.toString();
    }

    private long number(
        final String name, final long otherwise, final long least, final long most) {
        final Object value = configs.get(name);
        if (value == null) {
            return otherwise;
        }
        try {
            final long number = Long.parseLong(value.toString().trim());
            if (number >= least && number <= most) {
                return number;
            }
        } catch (final NumberFormatException notANumber) {
            // Named below.
        }
        LOG.warn("caughtup: {} is {}, and not a whole number from {} to {}; using {}", name,
            value, least, most, otherwise);
        return otherwise;
    }
}
