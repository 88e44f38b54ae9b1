package oracles;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** The group coordinator's published assignors behind a pipe: a group in, its target out. */
public final class GroupCoordinatorOracle {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> {
                final JsonNode group = JSON.readTree(line);
                return group.get("assignor").asText().equals("sticky")
                    ? streams(group) : consumers(group);
            },
            refused -> JSON.createObjectNode().put("exception", refused.toString()));
    }

    private static ObjectNode streams(final JsonNode group) {
        final JsonNode subtopologies = group.get("subtopologies");
        final Map<String, AssignmentMemberSpec> members = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            final JsonNode member = entry.getValue();
            members.put(entry.getKey(), new AssignmentMemberSpec(
                Optional.empty(), Optional.empty(), byName(member.get("active")),
                byName(member.get("standby")), Map.of(), member.get("process").asText(),
                Map.of(), Map.of(), Map.of()));
        });
        final TopologyDescriber topology = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                final List<String> names = new ArrayList<>();
                subtopologies.fieldNames().forEachRemaining(names::add);
                return names;
            }

            @Override
            public int maxNumInputPartitions(final String name) {
                return subtopologies.get(name).get("partitions").asInt();
            }

            @Override
            public boolean isStateful(final String name) {
                return subtopologies.get(name).get("stateful").asBoolean();
            }
        };
        final Map<String, String> configs =
            Map.of("num.standby.replicas", group.get("standbys").asText());
        final ObjectNode answer = JSON.createObjectNode();
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), topology).members()
            .forEach((id, given) -> {
                final ObjectNode tasks = answer.putObject(id);
                tasks.set("active", JSON.valueToTree(given.activeTasks()));
                tasks.set("standby", JSON.valueToTree(given.standbyTasks()));
            });
        return answer;
    }

    private static ObjectNode consumers(final JsonNode group) {
        final Map<Uuid, Integer> topics = new LinkedHashMap<>();
        group.get("topics").fields().forEachRemaining(
            entry -> topics.put(topic(entry.getKey()), entry.getValue().asInt()));
        final Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        group.get("members").fields().forEachRemaining(entry -> {
            final Map<Uuid, Set<Integer>> had = new HashMap<>();
            byName(entry.getValue()).forEach((name, partitions) -> {
                had.put(topic(name), partitions);
                partitions.forEach(one -> owners
                    .computeIfAbsent(topic(name), absent -> new HashMap<>())
                    .put(one, entry.getKey()));
            });
            members.put(entry.getKey(), new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), Optional.empty(), topics.keySet(), new Assignment(had)));
        });
        final SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(final Uuid topic) {
                return topics.get(topic);
            }

            @Override
            public Set<String> racksForPartition(final Uuid topic, final int partition) {
                return Set.of();
            }
        };
        final ConsumerGroupPartitionAssignor assignor =
            group.get("assignor").asText().equals("range")
                ? new RangeAssignor() : new UniformAssignor();
        final ObjectNode answer = JSON.createObjectNode();
        assignor.assign(
            new org.apache.kafka.coordinator.group.modern.GroupSpecImpl(
                members, SubscriptionType.HOMOGENEOUS, owners),
            describer
        ).members().forEach((id, given) -> {
            final ObjectNode partitions = answer.putObject(id);
            given.partitions().forEach((topic, own) -> {
                final ArrayNode numbers =
                    partitions.putArray(Long.toString(topic.getLeastSignificantBits()));
                own.forEach(numbers::add);
            });
        });
        return answer;
    }

    /** Topics are named by numbers, in whose order their ids' hash codes are. */
    private static Uuid topic(final String name) {
        return new Uuid(0L, Long.parseLong(name));
    }

    private static Map<String, Set<Integer>> byName(final JsonNode partitions) {
        final Map<String, Set<Integer>> found = new HashMap<>();
        partitions.fields().forEachRemaining(entry -> {
            final List<Integer> numbers = new ArrayList<>();
            entry.getValue().forEach(one -> numbers.add(one.asInt()));
            found.put(entry.getKey(), new HashSet<>(numbers));
        });
        return found;
    }
}
