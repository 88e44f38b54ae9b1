package org.apache.kafka.connect.runtime.distributed;

import static org.apache.kafka.connect.runtime.distributed.ConnectProtocol.CONNECTOR_ASSIGNMENT_V0;
import static org.apache.kafka.connect.runtime.distributed.ConnectProtocol.CONNECTOR_TASK;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import oracles.Pipe;
import org.apache.kafka.common.message.JoinGroupResponseData.JoinGroupResponseMember;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.utils.ExponentialBackoff;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The published workers behind a pipe: a group's rounds a line in, what its leaders decide and what
 * its workers have then a line out. Whoever leads a round that the leader of the one before didn't
 * is a worker that was just started.
 */
public final class ConnectOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String LEADER_URL = "http://leader:8083/";
    private static final long OFFSET = 42;

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> {
                final JsonNode question = JSON.readTree(line);
                return question.has("backoffs") ? backoffs(question) : decide(question);
            },
            refused -> JSON.createObjectNode().put("exception", refused.toString()));
    }

    /** Answer with what an assignor waits, made with these delays, after so many rounds in a row. */
    private static ObjectNode backoffs(final JsonNode question) {
        final ObjectNode answer = JSON.createObjectNode();
        for (final JsonNode longest : question.get("backoffs")) {
            final int initial = longest.asInt() == 0 ? 0 : 1;
            final ExponentialBackoff backoff =
                new ExponentialBackoff(initial, 40, longest.asLong(), 0);
            final ArrayNode delays = answer.putArray(longest.asText());
            for (int times = 1; times <= question.get("times").asInt(); times++) {
                delays.add((int) backoff.backoff(times));
            }
        }
        return answer;
    }

    private static ObjectNode decide(final JsonNode story) throws Exception {
        final ObjectNode answer = JSON.createObjectNode();
        final ArrayNode rounds = answer.putArray("rounds");
        double milliseconds = 0;
        Worker leader = null;
        for (final JsonNode round : story.get("rounds")) {
            final String name = round.get("leader").asText();
            if (leader == null || !leader.memberId().equals(name)) {
                leader = new Worker(name, story.get("max_delay_ms").asInt());
            }
            final String protocol = round.get("protocol").asText();
            leader.configSnapshot(configured(round.get("connectors")));
            leader.begin(round);
            final List<JoinGroupResponseMember> members = new ArrayList<>();
            for (final Map.Entry<String, JsonNode> worker : round.get("workers").properties()) {
                members.add(new JoinGroupResponseMember().setMemberId(worker.getKey())
                    .setMetadata(joins(worker.getValue(), protocol)));
            }
            final long start = System.nanoTime();
            final Map<String, ByteBuffer> told =
                leader.onLeaderElected(name, protocol, members, false);
            milliseconds += (System.nanoTime() - start) / 1e6;
            final ObjectNode one = rounds.addObject();
            write(one, round, protocol, told);
        }
        return answer.put("ms", milliseconds);
    }

    private static void write(
        final ObjectNode one,
        final JsonNode round,
        final String protocol,
        final Map<String, ByteBuffer> told
    ) {
        final ObjectNode workers = one.putObject("workers");
        told.forEach((name, bytes) -> {
            final ExtendedAssignment given =
                IncrementalCooperativeConnectProtocol.deserializeAssignment(bytes.duplicate());
            final JsonNode owned = round.get("workers").get(name);
            final byte[] next = Worker.next(round, protocol, name, assigned(owned, protocol), bytes);
            final ExtendedAssignment sent = IncrementalCooperativeConnectProtocol
                .deserializeMetadata(ByteBuffer.wrap(next)).assignment();
            final ObjectNode worker = workers.putObject(name);
            one.put("delay_ms", given.delay());
            write(worker.putObject("assigned"), given.connectors(), given.tasks());
            write(worker.putObject("revoked"), given.revokedConnectors(), given.revokedTasks());
            write(worker.putObject("sends"), sent.connectors(), sent.tasks());
            worker.put("joined", joins(owned, protocol));
            worker.put("assignment", Utils.toArray(bytes)).put("subscription", next);
        });
    }

    private static void write(
        final ObjectNode into, final Collection<String> names, final Collection<ConnectorTaskId> ids
    ) {
        final ArrayNode connectors = into.putArray("connectors");
        names.forEach(connectors::add);
        final ArrayNode tasks = into.putArray("tasks");
        ids.forEach(id -> tasks.addArray().add(id.connector()).add(id.task()));
    }

    private static ClusterConfigState configured(final JsonNode connectors) {
        final Map<String, Integer> counts = new HashMap<>();
        final Map<String, Map<String, String>> configs = new HashMap<>();
        for (final Map.Entry<String, JsonNode> connector : connectors.properties()) {
            counts.put(connector.getKey(), connector.getValue().asInt());
            configs.put(connector.getKey(), Map.of());
        }
        return new ClusterConfigState(OFFSET, null, counts, configs, Map.of(), Map.of(), Map.of(),
            Map.of(), Map.of(), Set.of(), Set.of());
    }

    /** What a worker sends when it joins; nothing of what it owns where all work is dealt anew. */
    private static byte[] joins(final JsonNode owned, final String protocol) {
        final ConnectProtocolCompatibility mode = ConnectProtocolCompatibility.fromProtocol(protocol);
        if (mode == ConnectProtocolCompatibility.EAGER) {
            return Utils.toArray(ConnectProtocol.serializeMetadata(
                new ConnectProtocol.WorkerState(LEADER_URL, OFFSET)));
        }
        final boolean sessioned = mode == ConnectProtocolCompatibility.SESSIONED;
        final ByteBuffer empty = IncrementalCooperativeConnectProtocol.serializeMetadata(
            new ExtendedWorkerState(LEADER_URL, OFFSET, null), sessioned);
        final ByteBuffer assigned = assigned(owned, protocol);
        if (assigned == null) {
            return Utils.toArray(empty);
        }
        // Its last four bytes say that nothing was assigned; the assignment takes their place.
        final ByteBuffer whole = ByteBuffer.allocate(empty.remaining() + assigned.remaining());
        whole.put(empty).position(whole.position() - Integer.BYTES);
        return whole.putInt(assigned.remaining()).put(assigned).array();
    }

    /** Kafka would write connectors in the order of a HashSet; here they stay as they are given. */
    private static ByteBuffer assigned(final JsonNode owned, final String protocol) {
        final List<Struct> entries = new ArrayList<>();
        for (final JsonNode connector : owned.get("connectors")) {
            entries.add(entry(connector.asText(), CONNECTOR_TASK));
        }
        for (final JsonNode task : owned.get("tasks")) {
            entries.add(entry(task.get(0).asText(), task.get(1).asInt()));
        }
        if (entries.isEmpty()) {
            return null;
        }
        final Struct struct = new ExtendedAssignment((short) 1, (short) 0, "", "", OFFSET,
            List.of(), List.of(), List.of(), List.of(), 0).toStruct();
        struct.set(ConnectProtocol.ASSIGNMENT_KEY_NAME, entries.toArray());
        final ByteBuffer bytes = ByteBuffer.allocate(Short.BYTES + struct.sizeOf());
        bytes.putShort(ConnectProtocolCompatibility.fromProtocol(protocol).protocolVersion());
        struct.writeTo(bytes);
        return bytes.flip();
    }

    private static Struct entry(final String connector, final int task) {
        return new Struct(CONNECTOR_ASSIGNMENT_V0)
            .set(ConnectProtocol.CONNECTOR_KEY_NAME, connector)
            .set(ConnectProtocol.TASKS_KEY_NAME, new Object[] {task});
    }
}
