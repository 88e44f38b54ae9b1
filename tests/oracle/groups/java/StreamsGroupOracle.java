package oracles;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentMemberSpec;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.TopologyDescriber;

/** The published task assignor of streams groups behind a pipe: lines of `caughtup assign`. */
public final class StreamsGroupOracle {
    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> decide(new StreamsGroupLine(line)),
            refused ->
                StreamsGroupLine.JSON.createObjectNode().put("exception", refused.toString()));
    }

    private static Object decide(final StreamsGroupLine group) {
        final Map<String, AssignmentMemberSpec> members = new LinkedHashMap<>();
        group.members.forEach((id, member) -> members.put(id, new AssignmentMemberSpec(
            Optional.empty(), Optional.empty(), StreamsGroupLine.tasks(member, "active"),
            StreamsGroupLine.tasks(member, "standby"), Map.of(),
            member.get("process_id").asText(), Map.of(), Map.of(), Map.of())));
        final TopologyDescriber topology = new TopologyDescriber() {
            @Override
            public List<String> subtopologies() {
                return group.subtopologies;
            }

            @Override
            public int maxNumInputPartitions(final String name) {
                return group.tasks(name);
            }

            @Override
            public boolean isStateful(final String name) {
                return group.stateful(name);
            }
        };
        final Map<String, String> configs =
            Map.of("num.standby.replicas", Integer.toString(group.standbys));
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), topology).members()
            .forEach((id, own) -> group.assigned(id, own.activeTasks(), own.standbyTasks()));
        return group.answer();
    }
}
