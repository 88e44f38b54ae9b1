package oracles;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/**
 * Rules for new topics, by what their names begin with: each has to begin with one of test.prefixes, and
 * to have 3 replicas; under the last of these, no config of test.refused may be given.
 */
public final class TopicRules implements CreateTopicPolicy {
    private static final int REPLICAS = 3;

    private List<String> prefixes = List.of();
    private List<String> refused = List.of();

    @Override
    public void configure(final Map<String, ?> configs) {
        prefixes = listed(configs, "test.prefixes");
        refused = listed(configs, "test.refused");
    }

    private static List<String> listed(final Map<String, ?> configs, final String name) {
        return Arrays.asList(String.valueOf(configs.get(name)).split(","));
    }

    @Override
    public void validate(final RequestMetadata wanted) {
        final String topic = wanted.topic();
        if (topic.startsWith("__")) {
            return;
        }
        if (prefixes.stream().noneMatch(topic::startsWith)) {
            throw new PolicyViolationException("names have to begin with " + prefixes.get(0));
        }
        final Short replicas = wanted.replicationFactor();
        if (replicas == null || replicas != REPLICAS) {
            throw new PolicyViolationException("topics have to have 3 replicas");
        }
        if (topic.startsWith(prefixes.get(prefixes.size() - 1))) {
            for (final String name : refused) {
                if (wanted.configs().containsKey(name)) {
                    throw new PolicyViolationException(name + " may not be given");
                }
            }
        }
    }

    @Override
    public void close() { }
}
