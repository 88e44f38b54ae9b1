package caughtup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import oracles.Pipe;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ApplicationState;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.assignment.TaskAssignmentUtils;
import org.apache.kafka.streams.processor.assignment.TaskAssignor.TaskAssignment;

/** The follower's own classes behind a pipe: a question a line in, an answer a line out. */
public final class FollowerOracle {
    private static final ObjectMapper JACKSON = new ObjectMapper();

    private FollowerOracle() { }

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(line -> {
            final JsonNode question = JACKSON.readTree(line);
            return question.has("json") ? readJson(question)
                : question.has("assign") ? assign(question)
                : question.has("rebalances") ? wait(question)
                : question.has("keys") ? checkSignature(question) : decide(question);
        });
    }

    /** Reads bytes with the follower's reader, and writes what it read with its writer. */
    private static ObjectNode readJson(final JsonNode question) {
        final ObjectNode answer = JACKSON.createObjectNode();
        try {
            final byte[] text = Base64.getDecoder().decode(question.get("json").asText());
            final JsonNode value = Json.read(text);
            return answer.put("written", Json.write(value));
        } catch (final Json.Malformed malformed) {
            return answer.put("malformed", malformed.getMessage());
        }
    }

    /** Counts rebalances one after the other: what is caught up, when, and what it came to. */
    private static ObjectNode wait(final JsonNode question) {
        final JsonNode patience = question.get("patience");
        final FollowUpCounter waiting = new FollowUpCounter(new Following.Patience(patience.get(0).asLong(),
            patience.get(1).asLong(), patience.get(2).asLong()));
        final ObjectNode answer = JACKSON.createObjectNode();
        final ArrayNode counts = answer.putArray("counts");
        question.get("rebalances").forEach(one -> {
            final Map<ProcessId, List<TaskId>> ready = new HashMap<>();
            one.get("ready").properties().forEach(entry -> {
                final List<TaskId> tasks = new ArrayList<>();
                entry.getValue().forEach(task -> tasks.add(TaskId.parse(task.asText())));
                ready.put(new ProcessId(UUID.fromString(entry.getKey())), tasks);
            });
            waiting.begin(ready, one.get("now_ms").asLong());
            counts.addArray().add(waiting.waited()).add(waiting.repeated());
            waiting.count(one.get("followed").asBoolean(),
                one.hasNonNull("follow_up_ms") ? one.get("follow_up_ms").asLong() : null,
                one.get("now_ms").asLong());
        });
        return answer;
    }

    /** Says what is wrong with a key file, or with a signature by its keys; "" for nothing. */
    private static ObjectNode checkSignature(final JsonNode question) {
        final ObjectNode answer = JACKSON.createObjectNode();
        try {
            final SigningKeys keys = new SigningKeys(question.get("keys").asText());
            final Rules.Objection forgery = keys.forgery(
                question.get("cluster").asText(), question.get("group").asText(),
                Base64.getDecoder().decode(question.get("value").asText()),
                question.hasNonNull("header")
                    ? Base64.getDecoder().decode(question.get("header").asText()) : null);
            return forgery == null ? answer.put("code", "").put("message", "")
                : answer.put("code", forgery.code).put("message", forgery.message);
        } catch (final SigningKeys.BadKeyFile bad) {
            return answer.put("code", "bad_key_file").put("message", bad.getMessage());
        }
    }

    /** Decides a rebalance from all that a follower takes into account. */
    private static ObjectNode decide(final JsonNode question) throws Exception {
        final ApplicationState state = new FabricatedState(question.get("scenario"));
        final JsonNode patience = question.get("patience");
        Following.NewestRecommendation read = new Following.NewestRecommendation("no_recommendation", "there is none");
        if (question.hasNonNull("record")) {
            try {
                final byte[] record =
                    question.get("record").asText().getBytes(StandardCharsets.UTF_8);
                read = new Following.NewestRecommendation(
                    Recommendation.read(record, "orders"), question.get("age_ms").asLong());
            } catch (final Json.Malformed malformed) {
                read = new Following.NewestRecommendation("malformed", malformed.getMessage());
            }
        }
        final long start = System.nanoTime();
        final Application application = new Application(state);
        final Outcome outcome = Following.decide(
            application, read,
            new Following.Patience(patience.get(0).asLong(), patience.get(1).asLong(),
                patience.get(2).asLong()),
            question.get("waited").asInt(), question.get("repeated").asInt());
        final double milliseconds = (System.nanoTime() - start) / 1e6;
        final ObjectNode answer = JACKSON.createObjectNode().put("ms", milliseconds);
        answer.set("outcome", JACKSON.readTree(Json.write(outcome.toJson())));
        answer.set("state", JACKSON.readTree(Json.write(
            ApplicationStateRecord.of(
                application, outcome, Map.of(), "orders", "state-1", 7))));
        final Instant now = Instant.ofEpochMilli(1_000);
        return check(answer, state, outcome.assignment(application.clients.lastKey(), now));
    }

    /** Has the class that applications configure assign, with no broker to be had. */
    private static ObjectNode assign(final JsonNode question) {
        final FabricatedState state = new FabricatedState(question.get("scenario"));
        final String how = question.get("assign").asText();
        state.failure = how.equals("without lags") ? new Exception("no lags today")
            : how.equals("without memory") ? new OutOfMemoryError("Java heap space")
            : how.equals("without stack") ? new StackOverflowError() : null;
        final FollowingTaskAssignor assignor = new FollowingTaskAssignor();
        assignor.configure(Map.of(
            "application.id", "orders", "bootstrap.servers", "127.0.0.1:1", "client.id", "one"));
        final long start = System.nanoTime();
        final TaskAssignment assignment = assignor.assign(state);
        final ObjectNode answer = JACKSON.createObjectNode();
        answer.put("ms", (System.nanoTime() - start) / 1e6);
        return check(answer, state, assignment);
    }

    /** Adds what Kafka Streams itself says of an assignment. */
    private static ObjectNode check(
        final ObjectNode answer, final ApplicationState state, final TaskAssignment assignment) {
        answer.put("error", TaskAssignmentUtils.validateTaskAssignment(state, assignment).name());
        answer.put("follow_ups", assignment.assignment().stream()
            .filter(one -> one.followupRebalanceDeadline().isPresent()).count());
        assignment.assignment().forEach(one -> one.followupRebalanceDeadline().ifPresent(moment ->
            answer.put("prober", one.processId().toString())
                .put("follow_up_at_ms", moment.toEpochMilli())));
        final ObjectNode clients = answer.putObject("clients");
        assignment.assignment().forEach(one -> {
            final ObjectNode tasks = clients.putObject(one.processId().toString());
            one.tasks().forEach((task, given) -> tasks.put(task.toString(), given.type().name()));
        });
        return answer;
    }
}
