package org.apache.kafka.streams.processor.internals;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * A scenario's subtopologies, as the topology builder of the published jar makes them.
 *
 * The builder numbers subtopologies from 0, and decides how internal topics are called: a
 * repartition topic "app-NAME", a changelog "app-STORE-changelog", where app is the application id.
 * A scenario that names them otherwise is refused.
 */
final class PartitionAssignorTopology {
    static final String APPLICATION_ID = "app";
    private static final String PREFIX = APPLICATION_ID + "-";
    private static final String SUFFIX = "-changelog";

    private final JsonNode partitions;
    private final InternalTopologyBuilder builder = new InternalTopologyBuilder();

    private PartitionAssignorTopology(final JsonNode scenario) {
        partitions = scenario.get("partitions");
        final Map<Integer, JsonNode> sorted = new TreeMap<>();
        for (final Map.Entry<String, JsonNode> one : scenario.get("subtopologies").properties()) {
            sorted.put(Integer.valueOf(one.getKey()), one.getValue());
        }
        sorted.forEach(this::add);
    }

    /** Builds the scenario's topology, as the leader asks for it; raises what the jar raises. */
    static Object of(final JsonNode scenario, final StreamsConfig config) {
        final InternalTopologyBuilder builder = new PartitionAssignorTopology(scenario).builder;
        builder.setApplicationId(APPLICATION_ID);
        final Object topology = PublishedRelease.topology(builder, config);
        final Map<Integer, InternalTopologyBuilder.TopicsInfo> found =
            PublishedRelease.subtopologies(topology);
        scenario.get("subtopologies").properties().forEach(
            wanted -> check(wanted.getKey(), wanted.getValue(), found));
        return topology;
    }

    private static void check(
        final String number, final JsonNode wanted,
        final Map<Integer, InternalTopologyBuilder.TopicsInfo> found) {
        final InternalTopologyBuilder.TopicsInfo topics = found.get(Integer.valueOf(number));
        final Set<String> read = names(wanted.path("sources"), wanted.path("repartition_sources"));
        final Set<String> stored =
            names(wanted.path("changelogs"), wanted.path("source_changelogs"));
        if (topics == null || !topics.sourceTopics.equals(read)
            || !topics.stateChangelogTopics.keySet().equals(stored)) {
            throw new IllegalArgumentException(
                "no topology has this as subtopology " + number + ": " + wanted + ", but " + topics);
        }
    }

    private static Set<String> names(final JsonNode some, final JsonNode others) {
        final Set<String> names = new TreeSet<>();
        some.forEach(name -> names.add(name.asText()));
        others.forEach(name -> names.add(name.asText()));
        return names;
    }

    private void add(final int number, final JsonNode subtopology) {
        final List<String> sources = new ArrayList<>();
        subtopology.path("sources").forEach(
            topic -> sources.add(source(number, topic.asText(), topic.asText())));
        for (final JsonNode topic : subtopology.path("repartition_sources")) {
            final String internal = within(topic.asText(), "");
            builder.addInternalTopic(
                internal, new InternalTopicProperties(partitions.get(topic.asText()).asInt()));
            sources.add(source(number, topic.asText(), internal));
        }
        final String processor = "processor-" + number;
        final ProcessorSupplier<Object, Object, Object, Object> idle = Idle::new;
        builder.addProcessor(processor, idle, sources.toArray(new String[0]));
        for (final JsonNode topic : subtopology.path("changelogs")) {
            builder.addStateStore(store(within(topic.asText(), SUFFIX)), processor);
        }
        for (final JsonNode topic : subtopology.path("source_changelogs")) {
            // So does StreamsBuilder when it optimises a table away: no changelog but the source.
            final String store = "table-of-" + topic.asText();
            builder.addStateStore(store(store).withLoggingDisabled(), processor);
            builder.connectSourceStoreAndTopic(store, topic.asText());
        }
    }

    private String source(final int number, final String topic, final String name) {
        final String source = "source-" + number + "-" + topic;
        builder.addSource(
            null, source, null, new ByteArrayDeserializer(), new ByteArrayDeserializer(), name);
        return source;
    }

    private static StoreBuilder<?> store(final String name) {
        return Stores.keyValueStoreBuilder(
            Stores.inMemoryKeyValueStore(name), Serdes.ByteArray(), Serdes.ByteArray());
    }

    private static String within(final String topic, final String suffix) {
        if (!topic.startsWith(PREFIX) || !topic.endsWith(suffix)) {
            throw new IllegalArgumentException(
                topic + " is not called " + PREFIX + "..." + suffix);
        }
        return topic.substring(PREFIX.length(), topic.length() - suffix.length());
    }

    private static final class Idle implements Processor<Object, Object, Object, Object> {
        @Override
        public void process(final Record<Object, Object> record) {
            throw new IllegalStateException("nothing runs here");
        }
    }
}
