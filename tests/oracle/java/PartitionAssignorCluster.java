package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.internals.KafkaFutureImpl;

/**
 * The Kafka cluster that a scenario describes, answering what the leader asks while it assigns:
 * an admin client, the main consumer's committed offsets, and the metadata of all topics.
 */
final class PartitionAssignorCluster {
    private final JsonNode scenario;
    private final Set<String> missing = new TreeSet<>();

    PartitionAssignorCluster(final JsonNode scenario) {
        this.scenario = scenario;
        scenario.path("new_topics").forEach(topic -> missing.add(topic.asText()));
    }

    /** Returns the metadata of the topics that exist before the rebalance. */
    Cluster metadata() {
        final List<PartitionInfo> partitions = new ArrayList<>();
        for (final Map.Entry<String, JsonNode> topic : scenario.get("partitions").properties()) {
            for (int number = 0; exists(topic.getKey()) && number < count(topic.getKey()); number++) {
                final Node[] nodes = nodes(topic.getKey(), number).toArray(new Node[0]);
                final Node leader = nodes.length == 0 ? null : nodes[0];
                partitions.add(new PartitionInfo(topic.getKey(), number, leader, nodes, nodes));
            }
        }
        final List<Node> nodes = new ArrayList<>();
        scenario.path("brokers").fieldNames().forEachRemaining(id -> nodes.add(node(id)));
        return new Cluster("oracle", nodes, partitions, Set.of(), Set.of());
    }

    Admin admin() {
        return answering(Admin.class, (method, arguments) -> switch (method.getName()) {
            case "listOffsets" -> listOffsets((Map<?, ?>) arguments[0]);
            case "describeTopics" -> describeTopics(names(arguments[0]));
            case "createTopics" -> createTopics((Collection<?>) arguments[0]);
            default -> throw new UnsupportedOperationException(method.toString());
        });
    }

    @SuppressWarnings("unchecked")
    Consumer<byte[], byte[]> consumer() {
        return answering(Consumer.class, (method, arguments) -> {
            if (method.getName().equals("committed")) {
                return committed((Set<TopicPartition>) arguments[0]);
            }
            throw new UnsupportedOperationException(method.toString());
        });
    }

    private interface Answer {
        Object to(Method method, Object[] arguments);
    }

    private static <T> T answering(final Class<T> type, final Answer answer) {
        return type.cast(Proxy.newProxyInstance(
            type.getClassLoader(), new Class<?>[] {type},
            (proxy, method, arguments) -> answer.to(method, arguments)));
    }

    private boolean exists(final String topic) {
        return !missing.contains(topic) && scenario.get("partitions").has(topic);
    }

    private int count(final String topic) {
        return scenario.get("partitions").get(topic).asInt();
    }

    private List<Node> nodes(final String topic, final int partition) {
        final List<Node> nodes = new ArrayList<>();
        for (final JsonNode id : scenario.path("replicas").path(topic + "-" + partition)) {
            nodes.add(node(id.asText()));
        }
        return nodes;
    }

    private Node node(final String id) {
        final JsonNode rack = scenario.path("brokers").path(id);
        return new Node(
            Integer.parseInt(id), "broker", 9092, rack.isTextual() ? rack.asText() : null);
    }

    private ListOffsetsResult listOffsets(final Map<?, ?> asked) {
        final JsonNode ends = scenario.path("end_offsets");
        final Map<TopicPartition, KafkaFuture<ListOffsetsResultInfo>> answers = new HashMap<>();
        for (final Object one : asked.keySet()) {
            final TopicPartition partition = (TopicPartition) one;
            if (ends.isNull()) {
                answers.put(partition, failed(new TimeoutException("the listing fails")));
            } else if (!ends.has(partition.toString())) {
                throw new IllegalArgumentException("the scenario has no end of " + partition);
            } else {
                answers.put(partition, KafkaFuture.completedFuture(new ListOffsetsResultInfo(
                    ends.get(partition.toString()).asLong(), 0L, Optional.empty())));
            }
        }
        return new ListOffsetsResult(answers);
    }

    private Map<TopicPartition, OffsetAndMetadata> committed(final Set<TopicPartition> asked) {
        final JsonNode committed = scenario.path("committed");
        if (committed.isNull()) {
            throw new TimeoutException("fetching committed offsets fails");
        }
        final Map<TopicPartition, OffsetAndMetadata> answers = new HashMap<>();
        for (final TopicPartition partition : asked) {
            final JsonNode offset = committed.path(partition.toString());
            answers.put(
                partition, offset.isMissingNode() ? null : new OffsetAndMetadata(offset.asLong()));
        }
        return answers;
    }

    private static Collection<?> names(final Object asked) {
        return asked instanceof Collection
            ? (Collection<?>) asked
            : PublishedRelease.topicNames(asked);
    }

    private DescribeTopicsResult describeTopics(final Collection<?> asked) {
        final Map<String, KafkaFuture<TopicDescription>> answers = new HashMap<>();
        for (final Object one : asked) {
            final String topic = (String) one;
            if (!exists(topic)) {
                answers.put(topic, failed(new UnknownTopicOrPartitionException(topic)));
                continue;
            }
            final List<TopicPartitionInfo> partitions = new ArrayList<>();
            for (int number = 0; number < count(topic); number++) {
                final List<Node> nodes = nodes(topic, number);
                final Node leader = nodes.isEmpty() ? null : nodes.get(0);
                partitions.add(new TopicPartitionInfo(number, leader, nodes, nodes));
            }
            answers.put(
                topic, KafkaFuture.completedFuture(new TopicDescription(topic, false, partitions)));
        }
        return (DescribeTopicsResult) PublishedRelease.described(answers);
    }

    private CreateTopicsResult createTopics(final Collection<?> asked) {
        final Map<String, KafkaFuture<CreateTopicsResult.TopicMetadataAndConfig>> answers =
            new HashMap<>();
        for (final Object one : asked) {
            final NewTopic topic = (NewTopic) one;
            if (!missing.remove(topic.name()) || count(topic.name()) != topic.numPartitions()) {
                throw new IllegalArgumentException("the scenario has no such new topic: " + topic);
            }
            answers.put(topic.name(), KafkaFuture.completedFuture(
                (CreateTopicsResult.TopicMetadataAndConfig) PublishedRelease.create(
                    CreateTopicsResult.TopicMetadataAndConfig.class,
                    Uuid.randomUuid(), topic.numPartitions(), 1, null)));
        }
        return (CreateTopicsResult) PublishedRelease.create(CreateTopicsResult.class, answers);
    }

    private static <T> KafkaFuture<T> failed(final Exception reason) {
        final KafkaFutureImpl<T> future = new KafkaFutureImpl<>();
        future.completeExceptionally(reason);
        return future;
    }
}
