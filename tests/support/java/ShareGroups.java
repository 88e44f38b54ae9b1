package oracles;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Members of share groups, and Kafka's Admin: BROKERS; each line of standard input is a command.
 *
 * "join GROUP TOPIC": one member more, which reads from the start. "poll GROUP SECONDS SEED": its members
 * poll for so long, and accept, release and reject at random. "take GROUP": one of its members polls,
 * and neither acknowledges nor polls again. "leave GROUP": its members close. "offsets GROUP": what the Admin lists, a line
 * "TOPIC PARTITION START LAG" each. Each command ends with the line "done".
 */
public final class ShareGroups {
    private static final Map<String, List<KafkaShareConsumer<byte[], byte[]>>> MEMBERS = new HashMap<>();

    private static final List<KafkaShareConsumer<byte[], byte[]>> TAKING = new ArrayList<>();

    private ShareGroups() { }

    public static void main(final String[] arguments) throws Exception {
        final Properties config = new Properties();
        config.setProperty("bootstrap.servers", arguments[0]);
        try (Admin admin = Admin.create(config)) {
            final BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                final String[] words = line.split(" ");
                switch (words[0]) {
                    case "join" -> join(admin, config, words[1], words[2]);
                    case "poll" -> poll(words[1], Double.parseDouble(words[2]), Long.parseLong(words[3]));
                    case "take" -> take(words[1]);
                    case "leave" -> MEMBERS.remove(words[1]).forEach(KafkaShareConsumer::close);
                    case "offsets" -> list(admin, words[1]);
                    default -> throw new IllegalArgumentException(line);
                }
                System.out.println("done");
                System.out.flush();
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void join(
            final Admin admin, final Properties common, final String group, final String topic) throws Exception {
        final ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        final AlterConfigOp earliest = new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(earliest))).all().get();
        final Properties config = new Properties();
        config.putAll(common);
        config.setProperty("group.id", group);
        config.setProperty("client.id", "sharer");
        config.setProperty("share.acknowledgement.mode", "explicit");
        final KafkaShareConsumer<byte[], byte[]> member = new KafkaShareConsumer<>(
            config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        member.subscribe(List.of(topic));
        MEMBERS.computeIfAbsent(group, name -> new ArrayList<>()).add(member);
    }

    private static void poll(final String group, final double seconds, final long seed) {
        final Random random = new Random(seed);
        final long until = System.nanoTime() + (long) (seconds * 1e9);
        do {
            for (final KafkaShareConsumer<byte[], byte[]> member : MEMBERS.get(group)) {
                final ConsumerRecords<byte[], byte[]> records = member.poll(Duration.ofMillis(50));
                for (final ConsumerRecord<byte[], byte[]> record : records) {
                    final int chosen = random.nextInt(10);
                    member.acknowledge(record, chosen < 7 ? AcknowledgeType.ACCEPT
                        : chosen < 9 ? AcknowledgeType.RELEASE : AcknowledgeType.REJECT);
                }
                member.commitSync(Duration.ofSeconds(30));
            }
        } while (System.nanoTime() < until);
    }

    private static void take(final String group) {
        final KafkaShareConsumer<byte[], byte[]> member = MEMBERS.get(group).remove(0);
        TAKING.add(member);
        member.poll(Duration.ofSeconds(2));
    }

    private static void list(final Admin admin, final String group) throws Exception {
        final Map<TopicPartition, SharePartitionOffsetInfo> found = new TreeMap<>(
            (one, other) -> one.toString().compareTo(other.toString()));
        found.putAll(admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get());
        found.forEach((place, info) -> {
            if (info != null) {
                System.out.println(place.topic() + " " + place.partition() + " " + info.startOffset() + " "
                    + (info.lag().isPresent() ? info.lag().get() : -1));
            }
        });
    }
}
