import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import oracles.Pipe;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.KStream;

/**
 * Real Kafka Streams instances, of whatever release is on the class path, behind a pipe: one line
 * starts or closes an instance, or asks for the states of all.
 *
 * An instance that is closed doesn't leave its group, as in all releases: the others go on without
 * it after its session's timeout, as if it had been killed.
 */
public final class ReleasedApplication {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, KafkaStreams> INSTANCES = new TreeMap<>();

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> handle(JSON.readTree(line)),
            refused -> JSON.createObjectNode().put("exception", refused.toString()));
        // Nobody wants what they leave: to close each would take seconds, or wait for a lost broker.
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode handle(final JsonNode asked) {
        final String name = asked.path("name").asText();
        if (asked.path("do").asText().equals("start")) {
            final Properties properties = new Properties();
            asked.get("config").properties().forEach(
                one -> properties.put(one.getKey(), one.getValue().asText()));
            final KafkaStreams instance =
                new KafkaStreams(topology(asked.get("source").asText()), properties);
            INSTANCES.put(name, instance);
            instance.start();
        } else if (asked.path("do").asText().equals("close")) {
            INSTANCES.remove(name).close(Duration.ofSeconds(10));
        }
        final ObjectNode states = JSON.createObjectNode();
        INSTANCES.forEach((one, instance) -> states.put(one, instance.state().name()));
        return states;
    }

    /** Builds two subtopologies with state: a count by key, and one of these counts by value. */
    private static Topology topology(final String source) {
        final StreamsBuilder builder = new StreamsBuilder();
        final KStream<String, String> read = builder.stream(source);
        read.groupByKey().count().toStream()
            .mapValues(count -> Long.toString(count % 10))
            .groupBy((key, value) -> key + value)
            .count();
        return builder.build();
    }
}
