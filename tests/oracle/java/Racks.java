import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.InternalTopicManager;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.RackAwareTaskAssignor;

/** Kafka's own RackAwareTaskAssignor over the racks and replicas that a scenario describes. */
final class Racks {
    private static final StreamsConfig CONFIG = new StreamsConfig(Map.of(
        StreamsConfig.APPLICATION_ID_CONFIG, "oracle",
        StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1"));

    private final JsonNode brokers;
    private final Map<TopicPartition, Node[]> replicas = new HashMap<>();

    private Racks(final JsonNode scenario) {
        brokers = scenario.path("brokers");
        for (final Map.Entry<String, JsonNode> one : scenario.path("replicas").properties()) {
            final int dash = one.getKey().lastIndexOf('-');
            final List<Node> nodes = new ArrayList<>();
            one.getValue().forEach(id -> nodes.add(broker(id.asInt())));
            final int partition = Integer.parseInt(one.getKey().substring(dash + 1));
            replicas.put(
                new TopicPartition(one.getKey().substring(0, dash), partition),
                nodes.toArray(new Node[0]));
        }
    }

    static Racks of(final JsonNode scenario) {
        return new Racks(scenario);
    }

    static RackAwareTaskAssignor of(final JsonNode scenario, final AssignmentConfigs configs) {
        final Racks racks = new Racks(scenario);
        final Map<TaskId, Set<TopicPartition>> sources = new HashMap<>();
        final Map<TaskId, Set<TopicPartition>> changelogs = new HashMap<>();
        final Map<Subtopology, Set<TaskId>> subtopologies = new HashMap<>();
        for (final Map.Entry<String, JsonNode> one : scenario.get("tasks").properties()) {
            final TaskId task = TaskId.parse(one.getKey());
            sources.put(task, partitions(one.getValue().path("source_partitions")));
            changelogs.put(task, partitions(one.getValue().path("changelog_partitions")));
            subtopologies
                .computeIfAbsent(new Subtopology(task.subtopology(), null), key -> new TreeSet<>())
                .add(task);
        }
        final Map<ProcessId, Map<String, Optional<String>>> clients = new TreeMap<>();
        for (final Map.Entry<String, JsonNode> one : scenario.get("clients").properties()) {
            final Optional<String> rack = Optional.ofNullable(text(one.getValue().path("rack")));
            final ProcessId process = new ProcessId(UUID.fromString(one.getKey()));
            clients.put(process, Map.of(one.getKey() + "-consumer", rack));
        }
        return new RackAwareTaskAssignor(
            racks.cluster(), sources, changelogs, subtopologies, clients, racks.topics(), configs,
            Time.SYSTEM);
    }

    static Set<TopicPartition> partitions(final JsonNode pairs) {
        final Set<TopicPartition> partitions = new TreeSet<>(
            (one, other) -> one.toString().compareTo(other.toString()));
        pairs.forEach(
            pair -> partitions.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt())));
        return partitions;
    }

    private static String text(final JsonNode node) {
        return node.isTextual() ? node.asText() : null;
    }

    private Node broker(final int id) {
        return new Node(id, "broker", 9092, text(brokers.path(Integer.toString(id))));
    }

    Cluster cluster() {
        final List<PartitionInfo> partitions = new ArrayList<>();
        replicas.forEach((partition, nodes) -> partitions.add(
            new PartitionInfo(partition.topic(), partition.partition(), null, nodes, nodes)));
        return new Cluster("oracle", List.of(), partitions, Set.of(), Set.of());
    }

    /** Describes topics from the scenario, as an admin client would from the cluster. */
    InternalTopicManager topics() {
        return new InternalTopicManager(Time.SYSTEM, null, CONFIG) {
            @Override
            public Map<String, List<TopicPartitionInfo>> getTopicPartitionInfo(
                final Set<String> topics) {
                final Map<String, List<TopicPartitionInfo>> described = new HashMap<>();
                replicas.forEach((partition, nodes) -> {
                    if (topics.contains(partition.topic())) {
                        described
                            .computeIfAbsent(partition.topic(), key -> new ArrayList<>())
                            .add(new TopicPartitionInfo(
                                partition.partition(), null, List.of(nodes), List.of()));
                    }
                });
                return described;
            }
        };
    }
}
