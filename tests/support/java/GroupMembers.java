package oracles;

import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of a consumer group, in Java's client: BROKERS GROUP ASSIGNOR TOPICS MEMBERS.
 *
 * They poll until standard input ends.
 */
public final class GroupMembers {
    private GroupMembers() { }

    public static void main(final String[] arguments) throws Exception {
        for (int member = 0; member < Integer.parseInt(arguments[4]); member++) {
            final Properties config = new Properties();
            config.setProperty("bootstrap.servers", arguments[0]);
            config.setProperty("group.id", arguments[1]);
            config.setProperty("auto.offset.reset", "earliest");
            config.setProperty("partition.assignment.strategy", arguments[2]);
            final Thread thread = new Thread(() -> poll(config, List.of(arguments[3].split(","))));
            thread.setDaemon(true);
            thread.start();
        }
        while (System.in.read() >= 0) { }
    }

    private static void poll(final Properties config, final List<String> topics) {
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(topics);
            while (true) {
                consumer.poll(Duration.ofMillis(100));
            }
        }
    }
}
