package org.apache.kafka.streams.processor.internals;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder.TopicsInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * What Kafka Streams calls by other names, or makes of other parts, from one release to the next.
 *
 * Releases from 2.8 on are known. Whatever decides is called directly, and nothing of it is here.
 */
final class PublishedRelease {
    private static final String PACKAGE = "org.apache.kafka.streams.processor.";
    private static final String PROCESS_ID = PACKAGE + "assignment.ProcessId";
    private static final String METADATA = PACKAGE + "internals.TopologyMetadata";
    private static final String LEGACY = PACKAGE + "internals.assignment.LegacyStickyTaskAssignor";
    private static final String INTERNAL = PACKAGE + "internals.assignment.StickyTaskAssignor";

    private PublishedRelease() { }

    private static Class<?> find(final String name) {
        try {
            return Class.forName(name);
        } catch (final ClassNotFoundException absent) {
            return null;
        }
    }

    /** Makes a process id: a class of its own since 3.8, a UUID before. */
    static Object processId(final String id) {
        final Class<?> type = find(PROCESS_ID);
        return type == null ? UUID.fromString(id) : create(type, UUID.fromString(id));
    }

    /** Names the internal sticky assignor, which was renamed in 3.8. */
    static String stickyAssignor() {
        return find(LEGACY) == null ? INTERNAL : LEGACY;
    }

    /** Wraps a builder in what the leader asks for its topology, itself before 3.1. */
    static Object topology(final InternalTopologyBuilder builder, final StreamsConfig config) {
        final Class<?> type = find(METADATA);
        if (type == null) {
            builder.rewriteTopology(config);
            builder.buildTopology();  // Stores have their changelogs once they are built.
            return builder;
        }
        final Object metadata = create(type, builder, config);
        call(metadata, "buildAndRewriteTopology");
        return metadata;
    }

    /** Returns the topics of each subtopology by its number. */
    static Map<Integer, TopicsInfo> subtopologies(final Object topology) {
        final Map<Integer, TopicsInfo> found = new HashMap<>();
        if (topology instanceof InternalTopologyBuilder) {
            ((Map<?, ?>) call(topology, "topicGroups"))
                .forEach((number, topics) -> found.put((Integer) number, (TopicsInfo) topics));
            return found;
        }
        final boolean named = Arrays.stream(topology.getClass().getDeclaredMethods())
            .anyMatch(one -> one.getName().equals("subtopologyTopicsInfoMapExcluding"));
        final Object all = named
            ? call(topology, "subtopologyTopicsInfoMapExcluding", Set.class, new HashSet<>())
            : call(topology, "topicGroups");
        ((Map<?, ?>) all).forEach(
            (subtopology, topics) ->
                found.put((Integer) get(subtopology, "nodeGroupId"), (TopicsInfo) topics));
        return found;
    }

    /** Makes a leader's task manager, of which assign() asks its process and its topology alone. */
    static TaskManager taskManager(final Object process, final Object topology) {
        try {
            final Field unsafe = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            final TaskManager manager = (TaskManager) ((sun.misc.Unsafe) unsafe.get(null))
                .allocateInstance(TaskManager.class);
            set(manager, "processId", process);
            final boolean builds = topology instanceof InternalTopologyBuilder;
            set(manager, builds ? "builder" : "topologyMetadata", topology);
            return manager;
        } catch (final ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    static StreamsMetadataState metadataState(final Object topology) {
        return (StreamsMetadataState) create(
            StreamsMetadataState.class, topology, new HostInfo("none", -1), new LogContext());
    }

    /** Answers a description of topics by name, which is all that there was before 3.1. */
    static Object described(final Map<String, ?> byName) {
        final Class<?> type = DescribeTopicsResult.class;
        final boolean byId = Arrays.stream(type.getDeclaredConstructors())
            .anyMatch(one -> one.getParameterCount() == 2);
        return byId ? create(type, null, byName) : create(type, byName);
    }

    /** Makes an object of the first of these arguments: of as many as its constructor takes. */
    static Object create(final Class<?> type, final Object... arguments) {
        try {
            final Constructor<?> taking = Arrays.stream(type.getDeclaredConstructors())
                .filter(one -> one.getParameterCount() <= arguments.length)
                .filter(one -> fits(one.getParameterTypes(), arguments))
                .max(Comparator.comparingInt(Constructor::getParameterCount))
                .orElseThrow();
            return open(taking).newInstance(Arrays.copyOf(arguments, taking.getParameterCount()));
        } catch (final ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static boolean fits(final Class<?>[] types, final Object[] arguments) {
        for (int place = 0; place < types.length; place++) {
            final Object given = arguments[place];
            if (given != null && !types[place].isPrimitive() && !types[place].isInstance(given)) {
                return false;
            }
        }
        return true;
    }

    /** Returns the names in a TopicNameCollection, by which topics are asked for since 3.1. */
    static Collection<?> topicNames(final Object collection) {
        return (Collection<?>) call(collection, "topicNames");
    }

    private static Object call(final Object on, final String name) {
        try {
            final Method method = on.getClass().getDeclaredMethod(name);
            return open(method).invoke(on);
        } catch (final ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static Object call(
        final Object on, final String name, final Class<?> type, final Object argument) {
        try {
            return open(on.getClass().getDeclaredMethod(name, type)).invoke(on, argument);
        } catch (final ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static Object get(final Object of, final String name) {
        try {
            return open(of.getClass().getDeclaredField(name)).get(of);
        } catch (final ReflectiveOperationException problem) {
            throw new IllegalStateException(problem);
        }
    }

    private static void set(final Object of, final String name, final Object value)
            throws ReflectiveOperationException {
        open(of.getClass().getDeclaredField(name)).set(of, value);
    }

    private static <T extends AccessibleObject> T open(final T member) {
        member.setAccessible(true);
        return member;
    }
}
