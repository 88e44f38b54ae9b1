package oracles;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a consumer group, in Java's client: BROKERS GROUP ASSIGNOR TOPICS MEMBERS [PROTOCOL].
 *
 * They poll until standard input ends; each line of it is the topics to which they subscribe from then on.
 * With the protocol "consumer" the assignor is the coordinator's.
 */
public final class GroupMembers {
    private static volatile List<String> topics;

    private GroupMembers() { }

    public static void main(final String[] arguments) throws Exception {
        topics = List.of(arguments[3].split(","));
        final boolean isNew = arguments.length > 5 && arguments[5].equals("consumer");
        for (int member = 0; member < Integer.parseInt(arguments[4]); member++) {
            final Properties config = new Properties();
            config.setProperty("bootstrap.servers", arguments[0]);
            config.setProperty("group.id", arguments[1]);
            config.setProperty("auto.offset.reset", "earliest");
            if (isNew) {
                config.setProperty("group.protocol", "consumer");
            }
            config.setProperty(
                isNew ? "group.remote.assignor" : "partition.assignment.strategy", arguments[2]);
            final Thread thread = new Thread(() -> poll(config));
            thread.setDaemon(true);
            thread.start();
        }
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            topics = List.of(line.split(","));
        }
    }

    private static void poll(final Properties config) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<String> subscribed = List.of();
            while (true) {
                if (!topics.equals(subscribed)) {
                    subscribed = topics;
                    consumer.subscribe(subscribed);
                }
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }
}
