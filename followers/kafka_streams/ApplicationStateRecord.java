package caughtup;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.AssignmentConfigs;
import org.apache.kafka.streams.processor.assignment.TaskInfo;
import org.apache.kafka.streams.processor.assignment.TaskTopicPartition;

/** The value of a record of application-states: what the leader knew, and what it did. */
final class ApplicationStateRecord {
    private ApplicationStateRecord() { }

    /**
     * Returns it as JSON values. A client's lags leave out the tasks of which it lags as much as
     * anybody: mostly those of which it has nothing.
     */
    static Map<String, Object> of(
        final Application application, final Outcome outcome,
        final Map<String, Object> decidedWith, final String group, final String stateId,
        final long publishedAtMs) {
        final Map<String, Object> record = new LinkedHashMap<>();
        record.put("schema", 1);
        record.put("group", group);
        record.put("state_id", stateId);
        record.put("published_at_ms", publishedAtMs);
        record.put("config", config(application.configs));
        final Map<String, Object> tasks = new LinkedHashMap<>();
        application.tasks.forEach((task, stateful) ->
            tasks.put(task.toString(), task(application.infos.get(task), stateful)));
        record.put("tasks", tasks);
        final Map<TaskId, Long> greatest = new TreeMap<>();
        application.clients.values().forEach(
            client -> client.lags.forEach((task, lag) -> greatest.merge(task, lag, Math::max)));
        final Map<String, Object> clients = new LinkedHashMap<>();
        application.clients.forEach((process, client) ->
            clients.put(process.toString(), client(client, greatest)));
        record.put("clients", clients);
        record.put("greatest_lags", greatest);
        record.put("follower", decidedWith);
        record.put("outcome", outcome.toJson());
        return record;
    }

    private static Map<String, Object> config(final AssignmentConfigs configs) {
        final Map<String, Object> config = new LinkedHashMap<>();
        config.put(StreamsConfig.ACCEPTABLE_RECOVERY_LAG_CONFIG, configs.acceptableRecoveryLag());
        config.put(StreamsConfig.MAX_WARMUP_REPLICAS_CONFIG, configs.maxWarmupReplicas());
        config.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, configs.numStandbyReplicas());
        config.put(StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG,
            configs.probingRebalanceIntervalMs());
        config.put(StreamsConfig.RACK_AWARE_ASSIGNMENT_TAGS_CONFIG,
            configs.rackAwareAssignmentTags());
        config.put(StreamsConfig.RACK_AWARE_ASSIGNMENT_STRATEGY_CONFIG,
            configs.rackAwareAssignmentStrategy());
        put(config, StreamsConfig.RACK_AWARE_ASSIGNMENT_TRAFFIC_COST_CONFIG,
            configs.rackAwareTrafficCost());
        put(config, StreamsConfig.RACK_AWARE_ASSIGNMENT_NON_OVERLAP_COST_CONFIG,
            configs.rackAwareNonOverlapCost());
        return config;
    }

    private static void put(
        final Map<String, Object> config, final String name, final OptionalInt cost) {
        config.put(name, cost.isPresent() ? cost.getAsInt() : null);
    }

    private static Map<String, Object> task(final TaskInfo info, final boolean stateful) {
        final Map<String, Object> task = new LinkedHashMap<>();
        task.put("stateful", stateful);
        task.put("stores", new TreeSet<>(info.stateStoreNames()));
        task.put("source_partitions", partitions(info, TaskTopicPartition::isSource));
        task.put("changelog_partitions", partitions(info, TaskTopicPartition::isChangelog));
        return task;
    }

    private static List<List<Object>> partitions(
        final TaskInfo info, final Predicate<TaskTopicPartition> wanted) {
        final Map<String, List<Object>> sorted = new TreeMap<>();
        for (final TaskTopicPartition one : info.topicPartitions()) {
            final TopicPartition partition = one.topicPartition();
            if (wanted.test(one)) {
                sorted.put(partition.topic() + ' ' + partition.partition(),
                    List.of(partition.topic(), partition.partition()));
            }
        }
        return new ArrayList<>(sorted.values());
    }

    private static Map<String, Object> client(
        final Application.Client client, final Map<TaskId, Long> greatest) {
        final Map<String, Object> json = new LinkedHashMap<>();
        json.put("capacity", client.state.numProcessingThreads());
        json.put("client_ids", client.state.consumerClientIds());
        json.put("tags", new TreeMap<>(client.state.clientTags()));
        client.state.rackId().ifPresent(rack -> json.put("rack", rack));
        json.put("previous_active", client.state.previousActiveTasks());
        json.put("previous_standby", client.state.previousStandbyTasks());
        final Map<TaskId, Long> lags = new TreeMap<>(client.lags);
        lags.entrySet().removeIf(lag -> lag.getValue().equals(greatest.get(lag.getKey())));
        json.put("lags", lags);
        return json;
    }
}
