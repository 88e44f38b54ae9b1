import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment;
import org.apache.kafka.streams.processor.assignment.KafkaStreamsAssignment.AssignedTask;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.AssignmentError;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;
import org.apache.kafka.streams.processor.assignment.assignors.StickyTaskAssignor;
import org.apache.kafka.streams.processor.internals.StreamsPartitionAssignor.ClientMetadata;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.ClientState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultApplicationState;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskInfo;
import org.apache.kafka.streams.processor.internals.assignment.DefaultTaskTopicPartition;
import org.apache.kafka.streams.processor.internals.assignment.RackUtils;

/**
 * The public StickyTaskAssignor over a scenario. Its application state is the jar's own, and what
 * goes into that is in the maps that StreamsPartitionAssignor keeps it in. The answer has the order
 * in which tasks got their standbys, because it depends on identity hash codes.
 */
final class PublicSticky {
    private PublicSticky() { }

    static void decide(
        final JsonNode scenario, final AssignmentConfigs configs,
        final Function<Map.Entry<String, JsonNode>, ClientState> client, final ObjectNode answer) {
        final Map<ProcessId, ClientMetadata> clients = new HashMap<>();
        for (final Map.Entry<String, JsonNode> one : scenario.get("clients").properties()) {
            final ProcessId process = new ProcessId(UUID.fromString(one.getKey()));
            final JsonNode rack = one.getValue().path("rack");
            final Optional<String> named =
                rack.isTextual() ? Optional.of(rack.asText()) : Optional.empty();
            clients.put(process, metadata(process, client.apply(one), named));
        }
        final ApplicationState state =
            new DefaultApplicationState(configs, tasks(scenario), clients);
        final long start = System.nanoTime();
        final TaskAssignment assignment = new StickyTaskAssignor().assign(state);
        answer.put("ms", (System.nanoTime() - start) / 1e6);
        final AssignmentError error = TaskAssignmentUtils.validateTaskAssignment(state, assignment);
        if (error != AssignmentError.NONE) {
            throw new IllegalStateException("the assignment is refused: " + error);
        }
        answer.put("probing_rebalance_needed", assignment.assignment().stream()
            .anyMatch(one -> one.followupRebalanceDeadline().isPresent()));
        final ArrayNode order = answer.putArray("standby_order");
        // The same objects in the same steps as StickyTaskAssignor's: the same order.
        for (final TaskInfo task : state.allTasks().values().stream()
            .filter(info -> info.topicPartitions().stream().anyMatch(TaskTopicPartition::isChangelog))
            .collect(Collectors.toSet())) {
            order.add(task.id().toString());
        }
        final ObjectNode assigned = answer.putObject("clients");
        for (final KafkaStreamsAssignment one : assignment.assignment()) {
            final ObjectNode given = assigned.putObject(one.processId().id().toString());
            write(given.putArray("active"), one, AssignedTask.Type.ACTIVE);
            write(given.putArray("standby"), one, AssignedTask.Type.STANDBY);
        }
    }

    /** Makes the leader's record of a process, which nobody but StreamsPartitionAssignor may. */
    private static ClientMetadata metadata(
        final ProcessId process, final ClientState state, final Optional<String> rack) {
        try {
            final Constructor<ClientMetadata> constructor = ClientMetadata.class
                .getDeclaredConstructor(ProcessId.class, String.class, Map.class, Optional.class);
            constructor.setAccessible(true);
            final ClientMetadata metadata =
                constructor.newInstance(process, null, Map.of(), rack);
            final Field field = ClientMetadata.class.getDeclaredField("state");
            field.setAccessible(true);
            field.set(metadata, state);
            return metadata;
        } catch (final ReflectiveOperationException changed) {
            throw new IllegalStateException(changed);
        }
    }

    private static Map<TaskId, TaskInfo> tasks(final JsonNode scenario) {
        final Map<Subtopology, Set<TaskId>> subtopologies = new HashMap<>();
        final Set<TaskId> sorted = new TreeSet<>();
        scenario.get("tasks").fieldNames().forEachRemaining(task -> sorted.add(TaskId.parse(task)));
        for (final TaskId task : sorted) {
            final Subtopology subtopology = new Subtopology(task.subtopology(), null);
            // As the leader does: computeIfAbsent would put it first in its bucket.
            if (!subtopologies.containsKey(subtopology)) {
                subtopologies.put(subtopology, new TreeSet<>());
            }
            subtopologies.get(subtopology).add(task);
        }
        final Map<TaskId, JsonNode> found = new HashMap<>();
        subtopologies.forEach((subtopology, tasks) -> tasks.forEach(
            task -> found.put(task, scenario.get("tasks").get(task.toString()))));

        final Racks racks = Racks.of(scenario);
        final Set<DefaultTaskTopicPartition> toPlace = new HashSet<>();
        final AtomicBoolean placed = new AtomicBoolean();
        final Runnable place = () -> {
            if (!placed.getAndSet(true)) {
                RackUtils.annotateTopicPartitionsWithRackInfo(
                    racks.cluster(), racks.topics(), toPlace);
            }
        };
        return found.keySet().stream().collect(Collectors.toMap(
            Function.identity(), task -> task(task, found.get(task), toPlace, place)));
    }

    private static TaskInfo task(
        final TaskId id, final JsonNode task, final Set<DefaultTaskTopicPartition> toPlace,
        final Runnable place) {
        final boolean stateful = task.get("stateful").asBoolean();
        final Set<TopicPartition> sources = Racks.partitions(task.path("source_partitions"));
        final Set<TopicPartition> changelogs = new HashSet<>();
        if (stateful) {
            changelogs.addAll(Racks.partitions(task.path("changelog_partitions")));
            if (changelogs.isEmpty()) {
                // The scenario doesn't name it, but a task with state has a changelog.
                changelogs.add(new TopicPartition("unnamed-" + id.subtopology(), id.partition()));
            }
        }
        final Set<TaskTopicPartition> read = new HashSet<>();
        final Set<TopicPartition> all = new HashSet<>(sources);
        all.addAll(changelogs);
        for (final TopicPartition one : all) {
            final DefaultTaskTopicPartition partition = new DefaultTaskTopicPartition(
                one, sources.contains(one), changelogs.contains(one), place);
            toPlace.add(partition);
            read.add(partition);
        }
        return new DefaultTaskInfo(id, stateful, stateful ? Set.of("store") : Set.of(), read);
    }

    private static void write(
        final ArrayNode array, final KafkaStreamsAssignment assignment,
        final AssignedTask.Type type) {
        final Set<TaskId> tasks = new TreeSet<>();
        assignment.tasks().values().forEach(task -> {
            if (task.type() == type) {
                tasks.add(task.id());
            }
        });
        tasks.forEach(task -> array.add(task.toString()));
    }
}
