package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import oracles.Pipe;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.FallbackPriorTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.HighAvailabilityTaskAssignor;
import org.apache.kafka.streams.processor.internals.assignment.ReferenceContainer;
import org.apache.kafka.streams.processor.internals.assignment.StreamsAssignmentProtocolVersions;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * The published StreamsPartitionAssignor behind a pipe: a whole rebalance a line in, every member's
 * assignment a line out. All that decides is the jar's, of any release since 2.8; the cluster
 * around it is the scenario's.
 */
public final class PartitionAssignorOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int LATEST_VERSION =
        StreamsAssignmentProtocolVersions.LATEST_SUPPORTED_VERSION;

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> assign(JSON.readTree(line)),
            refused -> JSON.createObjectNode().put("exception", refused.toString()));
    }

    private static ObjectNode assign(final JsonNode scenario) {
        final PartitionAssignorCluster cluster = new PartitionAssignorCluster(scenario);
        final Map<String, Object> configs = configs(scenario);
        final Object topology =
            PartitionAssignorTopology.of(scenario, new StreamsConfig(configs));
        final ReferenceContainer container = new ReferenceContainer();
        container.time = new Stopped(scenario.get("now_ms").asLong());
        container.adminClient = cluster.admin();
        container.mainConsumer = cluster.consumer();
        container.streamsMetadataState = PublishedRelease.metadataState(topology);
        container.taskManager =
            PublishedRelease.taskManager(process(scenario.get("leader")), topology);
        configs.put(
            StreamsConfig.InternalConfig.REFERENCE_CONTAINER_PARTITION_ASSIGNOR, container);
        final StreamsPartitionAssignor assignor = new StreamsPartitionAssignor();
        assignor.configure(configs);

        final Map<String, Subscription> subscriptions = new HashMap<>();
        scenario.get("members").properties().forEach(
            member -> subscriptions.put(member.getKey(), subscription(member.getValue())));
        final Map<String, Assignment> assigned = assignor
            .assign(cluster.metadata(), new GroupSubscription(subscriptions)).groupAssignment();

        final ObjectNode answer = JSON.createObjectNode();
        final ObjectNode members = answer.putObject("members");
        new TreeMap<>(assigned).forEach(
            (member, assignment) -> write(members.putObject(member), assignment));
        return answer;
    }

    private static Map<String, Object> configs(final JsonNode scenario) {
        final JsonNode config = scenario.get("config");
        final Map<String, Object> configs = new HashMap<>();
        configs.put(StreamsConfig.APPLICATION_ID_CONFIG, PartitionAssignorTopology.APPLICATION_ID);
        configs.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "127.0.0.1:1");
        configs.put(ConsumerConfig.CLIENT_ID_CONFIG, "leader");
        for (final Map.Entry<String, JsonNode> one : config.properties()) {
            final JsonNode value = one.getValue();
            if (value.isArray()) {
                final List<String> strings = new ArrayList<>();
                value.forEach(string -> strings.add(string.asText()));
                configs.put(one.getKey(), strings);
            } else if (!value.isNull()) {
                configs.put(one.getKey(), value.asText());
            }
        }
        for (final String tag : strings(config.path("rack.aware.assignment.tags"))) {
            // A tag that tells clients apart has to be one that the leader's client has, too.
            configs.put("client.tag." + tag, "leader");
        }
        final String internal = StreamsConfig.InternalConfig.INTERNAL_TASK_ASSIGNOR_CLASS;
        switch (scenario.get("assignor").asText()) {
            case "high_availability" ->
                configs.put(internal, HighAvailabilityTaskAssignor.class.getName());
            case "sticky" -> configs.put(internal, PublishedRelease.stickyAssignor());
            case "fallback_prior" ->
                configs.put(internal, FallbackPriorTaskAssignor.class.getName());
            case "public_sticky" -> configs.put(
                "task.assignor.class",
                "org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor");
            default -> throw new IllegalArgumentException(
                "no assignor is called " + scenario.get("assignor").asText());
        }
        return configs;
    }

    private static Subscription subscription(final JsonNode member) {
        final Map<TaskId, Long> sums = new TreeMap<>();
        member.path("offset_sums").properties().forEach(
            sum -> sums.put(TaskId.parse(sum.getKey()), sum.getValue().asLong()));
        final Map<String, String> tags = new TreeMap<>();
        member.path("tags").properties().forEach(
            tag -> tags.put(tag.getKey(), tag.getValue().asText()));
        final List<TopicPartition> owned = new ArrayList<>();
        member.path("owned").forEach(
            one -> owned.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        final int version =
            Math.min(LATEST_VERSION, member.path("version").asInt(LATEST_VERSION));
        final SubscriptionInfo info = (SubscriptionInfo) PublishedRelease.create(
            SubscriptionInfo.class, version, LATEST_VERSION, process(member.get("process")),
            member.path("end_point").asText(""), sums, (byte) 0, 0, tags);
        final JsonNode rack = member.path("rack");
        return (Subscription) PublishedRelease.create(
            Subscription.class, List.of(), info.encode(), owned, 1,
            rack.isTextual() ? Optional.of(rack.asText()) : Optional.empty());
    }

    private static Object process(final JsonNode id) {
        return PublishedRelease.processId(id.asText());
    }

    private static Set<String> strings(final JsonNode array) {
        final Set<String> strings = new TreeSet<>();
        array.forEach(one -> strings.add(one.asText()));
        return strings;
    }

    private static void write(final ObjectNode member, final Assignment assignment) {
        final AssignmentInfo info = AssignmentInfo.decode(assignment.userData());
        write(member.putArray("partitions"), assignment.partitions());
        final ArrayNode active = member.putArray("active");
        info.activeTasks().forEach(task -> active.add(task.toString()));
        final ObjectNode standby = member.putObject("standby");
        new TreeMap<>(info.standbyTasks()).forEach(
            (task, read) -> write(standby.putArray(task.toString()), sorted(read)));
        final long next = info.nextRebalanceMs();
        member.put("next_rebalance_ms", next == Long.MAX_VALUE ? null : (Long) next);
        member.put("error_code", info.errCode());
        if (!info.partitionsByHost().isEmpty()) {
            write(member.putObject("partitions_by_host"), info.partitionsByHost());
            write(member.putObject("standby_partitions_by_host"), info.standbyPartitionByHost());
        }
    }

    private static void write(
        final ObjectNode hosts, final Map<HostInfo, Set<TopicPartition>> partitions) {
        final Map<String, Set<TopicPartition>> byName = new TreeMap<>();
        partitions.forEach((host, those) -> byName.put(host.host() + ":" + host.port(), those));
        byName.forEach((host, those) -> write(hosts.putArray(host), sorted(those)));
    }

    private static void write(final ArrayNode array, final Collection<TopicPartition> partitions) {
        partitions.forEach(one -> array.addArray().add(one.topic()).add(one.partition()));
    }

    private static List<TopicPartition> sorted(final Set<TopicPartition> partitions) {
        final List<TopicPartition> sorted = new ArrayList<>(partitions);
        sorted.sort(Comparator.comparing(TopicPartition::topic)
            .thenComparingInt(TopicPartition::partition));
        return sorted;
    }

    /** A clock that stands still, and on which nobody is to wait. */
    private record Stopped(long milliseconds) implements Time {
        /** Overrides nothing in newer releases. */
        public long hiResClockMs() {
            return milliseconds;
        }

        @Override
        public long nanoseconds() {
            return milliseconds * 1_000_000;
        }

        @Override
        public void sleep(final long ms) {
            throw new IllegalStateException("the assignor waits for " + ms + " ms");
        }

        @Override
        public void waitObject(
            final Object object, final Supplier<Boolean> condition, final long deadlineMs) {
            throw new IllegalStateException("the assignor waits for " + condition);
        }
    }
}
