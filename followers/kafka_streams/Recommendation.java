package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;

/** What a follower needs of a record of recommended-assignments; everything else is ignored. */
final class Recommendation {
    private static final Pattern TASK = Pattern.compile("[0-9]{1,9}_[0-9]{1,9}");
    private static final Pattern PROCESS = Pattern.compile(
        "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}");

    /** Nothing of a recommendation's size should be near this. */
    static final int MAX_BYTES = 16 << 20;
    /** Each value but the first comes after one of these, and takes some 100 bytes of memory. */
    private static final int MAX_SEPARATORS = 1 << 20;
    /** Names go into log lines. */
    private static final Pattern NAME = Pattern.compile("[!-~]{1,100}");

    final String decisionId;
    /** Where each task is to be active. */
    final SortedMap<TaskId, ProcessId> active = new TreeMap<>();
    /** What each process stands by for, warm-ups included; its keys are the processes. */
    final SortedMap<ProcessId, SortedSet<TaskId>> standby = new TreeMap<>();
    /** Where each task was active when this was decided. */
    final Map<TaskId, Set<ProcessId>> found = new HashMap<>();
    /** The configs that this was decided from, by Kafka's names. */
    final JsonNode config;
    final boolean probingNeeded;
    /** How long after the decision a probing rebalance is worthwhile, in ms; null if not said. */
    final Long worthwhileAfterMs;

    /** Reads a record's value, once that is seen to be of a bearable size. */
    static Recommendation read(final byte[] value, final String group) throws Json.Malformed {
        if (value.length > MAX_BYTES) {
            throw new Json.Malformed(value.length + " bytes");
        }
        int separators = 0;
        for (final byte one : value) {
            separators += one == ',' || one == '[' || one == '{' ? 1 : 0;
        }
        if (separators > MAX_SEPARATORS) {
            throw new Json.Malformed("over " + MAX_SEPARATORS + " values");
        }
        return new Recommendation(mapping(Json.read(value), "the record"), group);
    }

    private Recommendation(final JsonNode record, final String group) throws Json.Malformed {
        final Long schema = whole(record.get("schema"));
        if (schema == null || schema != 1) {
            throw new Json.Malformed("schema is not 1");
        }
        final JsonNode named = record.get("group");
        if (named == null || !named.isTextual() || !group.equals(named.textValue())) {
            throw new Json.Malformed("group is not the expected one");
        }
        decisionId = string(record.get("decision_id"), "decision_id");
        for (final JsonNode process : list(record.get("process_ids"), "process_ids")) {
            if (standby.put(process(process.textValue()), new TreeSet<>()) != null) {
                throw new Json.Malformed("process_ids names a process twice");
            }
        }
        final JsonNode assignment = mapping(record.get("assignment"), "assignment");
        final Set<ProcessId> given = new HashSet<>();
        for (final Map.Entry<String, JsonNode> entry : assignment.properties()) {
            final ProcessId process = process(entry.getKey());
            if (!standby.containsKey(process) || !given.add(process)) {
                throw new Json.Malformed("assignment has other processes than process_ids");
            }
            addTasks(process, mapping(entry.getValue(), "assignment"));
        }
        if (given.size() != standby.size()) {
            throw new Json.Malformed("assignment has other processes than process_ids");
        }
        for (final Map.Entry<TaskId, ProcessId> entry : active.entrySet()) {
            if (standby.get(entry.getValue()).contains(entry.getKey())) {
                throw new Json.Malformed(entry.getKey() + " is active and standby on one process");
            }
        }
        final JsonNode inputs = mapping(record.get("inputs"), "inputs");
        final JsonNode scenario = mapping(inputs.get("scenario"), "inputs.scenario");
        final JsonNode clients = mapping(scenario.get("clients"), "inputs.scenario.clients");
        for (final Map.Entry<String, JsonNode> entry : clients.properties()) {
            final ProcessId process = process(entry.getKey());
            final JsonNode client = mapping(entry.getValue(), "inputs.scenario.clients");
            for (final JsonNode task : list(client.get("previous_active"), "previous_active")) {
                found.computeIfAbsent(task(task), any -> new HashSet<>()).add(process);
            }
        }
        config = mapping(scenario.has("config") ? scenario.get("config")
            : JsonNodeFactory.instance.objectNode(), "inputs.scenario.config");
        final JsonNode probing = mapping(record.get("probing_rebalance"), "probing_rebalance");
        if (!probing.path("needed").isBoolean()) {
            throw new Json.Malformed("probing_rebalance.needed is neither true nor false");
        }
        probingNeeded = probing.get("needed").booleanValue();
        final Long worthwhile = whole(probing.get("worthwhile_at_ms"));
        final Long decided = whole(record.get("decided_at_ms"));
        worthwhileAfterMs = worthwhile != null && worthwhile >= 0
            && decided != null && decided >= 0 ? (Long) (worthwhile - decided) : null;
    }

    private void addTasks(final ProcessId process, final JsonNode given) throws Json.Malformed {
        for (final JsonNode item : list(given.get("active"), "active")) {
            final TaskId task = task(item);
            if (active.put(task, process) != null) {
                throw new Json.Malformed(task + " is active twice");
            }
        }
        for (final JsonNode item : list(given.get("standby"), "standby")) {
            final TaskId task = task(item);
            if (!standby.get(process).add(task)) {
                throw new Json.Malformed(task + " is twice standby on one process");
            }
        }
    }

    /** A whole number that fits a long; null for anything else. */
    private static Long whole(final JsonNode value) {
        return value != null && value.isIntegralNumber() && value.canConvertToLong()
            ? (Long) value.longValue() : null;
    }

    private static TaskId task(final JsonNode value) throws Json.Malformed {
        if (!value.isTextual() || !TASK.matcher(value.textValue()).matches()) {
            throw new Json.Malformed("a task is not written like 0_3");
        }
        return TaskId.parse(value.textValue());
    }

    private static ProcessId process(final String text) throws Json.Malformed {
        if (text == null || !PROCESS.matcher(text).matches()) {
            throw new Json.Malformed("a process is not a UUID");
        }
        return new ProcessId(UUID.fromString(text));
    }

    private static JsonNode mapping(final JsonNode value, final String place)
        throws Json.Malformed {
        if (value == null || !value.isObject()) {
            throw new Json.Malformed(place + " is not an object");
        }
        return value;
    }

    private static JsonNode list(final JsonNode value, final String place) throws Json.Malformed {
        if (value == null || !value.isArray()) {
            throw new Json.Malformed(place + " is not an array");
        }
        return value;
    }

    private static String string(final JsonNode value, final String place) throws Json.Malformed {
        if (value == null || !value.isTextual() || !NAME.matcher(value.textValue()).matches()) {
            throw new Json.Malformed(place + " is not a name");
        }
        return value.textValue();
    }
}
