package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/**
 * The published assignors of consumer groups with a stopwatch, behind a pipe.
 *
 * A line of `caughtup assign` is kept and answered with "{}". A line "decide" is answered with the
 * decision on it and the milliseconds that the assignor alone took, by the clock and of its thread
 * on a processor; what it throws is answered as its "exception".
 */
public final class TimedConsumerGroup {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
    private static final Comparator<TopicPartition> BY_TOPIC =
        Comparator.comparing(TopicPartition::topic).thenComparing(TopicPartition::partition);

    public static void main(final String[] arguments) throws Exception {
        TimedPipe.answer(TimedConsumerGroup::decide);
    }

    private static ObjectNode decide(final JsonNode group) {
        final ObjectNode answer = JSON.createObjectNode();
        final Map<String, List<TopicPartition>> found = new TreeMap<>();
        final Runnable assign = prepared(group, found);

        final long startOfThread = THREADS.getCurrentThreadCpuTime();
        final long start = System.nanoTime();
        try {
            assign.run();
        } catch (final RuntimeException thrown) {
            return answer.put("exception", thrown.toString());
        }
        final long end = System.nanoTime();
        final long endOfThread = THREADS.getCurrentThreadCpuTime();

        answer.put("ms", (end - start) / 1e6);
        answer.put("cpu_ms", (endOfThread - startOfThread) / 1e6);
        final ObjectNode members = answer.putObject("decision").putObject("members");
        found.forEach((member, own) -> {
            own.sort(BY_TOPIC);
            final ArrayNode partitions = members.putArray(member);
            own.forEach(one -> partitions.addArray().add(one.topic()).add(one.partition()));
        });
        return answer;
    }

    private static Runnable prepared(
            final JsonNode group, final Map<String, List<TopicPartition>> found) {
        final Map<String, JsonNode> members = new TreeMap<>();
        group.get("members").fields().forEachRemaining(
            entry -> members.put(entry.getKey(), entry.getValue()));
        return switch (group.get("assignor").asText()) {
            case "range" -> client(new RangeAssignor(), group, members, found);
            case "roundrobin" -> client(new RoundRobinAssignor(), group, members, found);
            case "sticky" -> client(new StickyAssignor(), group, members, found);
            case "cooperative_sticky" ->
                client(new CooperativeStickyAssignor(), group, members, found);
            case "uniform" ->
                coordinator(new UniformAssignor(), group, members, found);
            default -> coordinator(
                new org.apache.kafka.coordinator.group.assignor.RangeAssignor(), group, members,
                found);
        };
    }

    private static Runnable client(
            final ConsumerPartitionAssignor assignor, final JsonNode group,
            final Map<String, JsonNode> members, final Map<String, List<TopicPartition>> found) {
        final Map<String, Node> nodes = new TreeMap<>();
        final List<PartitionInfo> partitions = new ArrayList<>();
        group.get("topics").fields().forEachRemaining(entry -> {
            final JsonNode racks = entry.getValue().path("racks");
            final int count = entry.getValue().get("partitions").asInt();
            for (int number = 0; number < count; number++) {
                final List<Node> replicas = new ArrayList<>();
                racks.path(number).forEach(rack -> replicas.add(nodes.computeIfAbsent(
                    rack.asText(), name -> new Node(nodes.size(), "localhost", 9092, name))));
                final Node[] all = replicas.toArray(new Node[0]);
                partitions.add(new PartitionInfo(entry.getKey(), number, null, all, all));
            }
        });
        final Cluster cluster =
            new Cluster("cluster", nodes.values(), partitions, Set.of(), Set.of());
        final Map<String, Subscription> subscriptions = new LinkedHashMap<>();
        members.forEach((id, member) -> {
            final List<TopicPartition> owned = owned(member);
            final JsonNode generation = member.path("generation");
            final boolean sticky = assignor instanceof StickyAssignor;
            final Subscription subscription = new Subscription(
                strings(member.get("topics")), sticky ? userData(owned, generation) : null,
                sticky ? List.of() : owned, generation.isInt() ? generation.asInt() : -1,
                Optional.ofNullable(member.path("rack").asText(null)));
            subscription.setGroupInstanceId(
                Optional.ofNullable(member.path("instance_id").asText(null)));
            subscriptions.put(id, subscription);
        });
        final GroupSubscription subscribed = new GroupSubscription(subscriptions);
        return () -> assignor.assign(cluster, subscribed).groupAssignment().forEach(
            (id, given) -> found.put(id, new ArrayList<>(given.partitions())));
    }

    /** What a sticky assignor writes: of version 0 if there is no generation, else of 1. */
    private static ByteBuffer userData(final List<TopicPartition> owned, final JsonNode generation) {
        final Map<String, List<Integer>> topics = new LinkedHashMap<>();
        int size = 8;
        for (final TopicPartition one : owned) {
            topics.computeIfAbsent(one.topic(), absent -> new ArrayList<>()).add(one.partition());
            size += 10 + one.topic().getBytes(StandardCharsets.UTF_8).length;
        }
        final ByteBuffer data = ByteBuffer.allocate(size);
        data.putInt(topics.size());
        topics.forEach((topic, numbers) -> {
            final byte[] name = topic.getBytes(StandardCharsets.UTF_8);
            data.putShort((short) name.length).put(name).putInt(numbers.size());
            numbers.forEach(data::putInt);
        });
        if (generation.isInt()) {
            data.putInt(generation.asInt());
        }
        return data.flip();
    }

    private static Runnable coordinator(
            final ConsumerGroupPartitionAssignor assignor, final JsonNode group,
            final Map<String, JsonNode> members, final Map<String, List<TopicPartition>> found) {
        final Map<String, Uuid> ids = new LinkedHashMap<>();
        final Map<Uuid, String> names = new HashMap<>();
        final Map<Uuid, Integer> counts = new HashMap<>();
        group.get("topics").fields().forEachRemaining(entry -> {
            // In hash tables of any size ids are in the order of the topics, if they are added in it:
            // an id's hash code is its number, or that of the last bucket of the smallest table.
            final long number = ids.size() + 1;
            final Uuid id = new Uuid(number, number ^ Math.min(number, 15));
            ids.put(entry.getKey(), id);
            names.put(id, entry.getKey());
            counts.put(id, entry.getValue().get("partitions").asInt());
        });
        final Map<String, MemberSubscriptionAndAssignmentImpl> specs = new LinkedHashMap<>();
        final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        final Set<Set<String>> subscriptions = new HashSet<>();
        members.forEach((id, member) -> {
            final Map<Uuid, Set<Integer>> had = new HashMap<>();
            final Map<String, List<Integer>> numbers = new HashMap<>();
            owned(member).stream().sorted(BY_TOPIC).forEach(one -> numbers
                .computeIfAbsent(one.topic(), absent -> new ArrayList<>()).add(one.partition()));
            ids.forEach((name, topic) -> {
                if (numbers.containsKey(name)) {
                    had.put(topic, new HashSet<>(numbers.get(name).stream().sorted().toList()));
                    numbers.get(name).forEach(number ->
                        owners.computeIfAbsent(topic, absent -> new HashMap<>()).put(number, id));
                }
            });
            final Set<String> topics = new HashSet<>(strings(member.get("topics")));
            subscriptions.add(topics);
            final Set<Uuid> subscribed = new HashSet<>();
            ids.forEach((name, topic) -> {
                if (topics.contains(name)) {
                    subscribed.add(topic);
                }
            });
            specs.put(id, new MemberSubscriptionAndAssignmentImpl(
                Optional.ofNullable(member.path("rack").asText(null)),
                Optional.ofNullable(member.path("instance_id").asText(null)),
                subscribed, new Assignment(had)));
        });
        final SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(final Uuid topic) {
                return counts.getOrDefault(topic, -1);
            }

            @Override
            public Set<String> racksForPartition(final Uuid topic, final int partition) {
                return Set.of();
            }
        };
        final SubscriptionType type = subscriptions.size() == 1
            ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        members.keySet().forEach(id -> found.put(id, new ArrayList<>()));
        return () -> assignor.assign(new GroupSpecImpl(specs, type, owners), describer)
            .members().forEach((id, given) -> given.partitions().forEach((topic, numbers) ->
                numbers.forEach(number ->
                    found.get(id).add(new TopicPartition(names.get(topic), number)))));
    }

    private static List<TopicPartition> owned(final JsonNode member) {
        final List<TopicPartition> found = new ArrayList<>();
        member.path("owned").forEach(one ->
            found.add(new TopicPartition(one.get(0).asText(), one.get(1).asInt())));
        return found;
    }

    private static List<String> strings(final JsonNode array) {
        final String[] found = new String[array.size()];
        Arrays.setAll(found, place -> array.get(place).asText());
        return List.of(found);
    }
}
