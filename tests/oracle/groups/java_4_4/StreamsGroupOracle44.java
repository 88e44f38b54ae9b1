package oracles;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;

/** The same of 4.4.0, where members report offsets. */
public final class StreamsGroupOracle44 {
    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(
            line -> decide(new StreamsGroupLine(line)),
            refused ->
                StreamsGroupLine.JSON.createObjectNode().put("exception", refused.toString()));
    }

    private static Object decide(final StreamsGroupLine group) {
        final Map<String, MemberMetadataAndStateImpl> members = new LinkedHashMap<>();
        group.members.forEach((id, member) -> members.put(id, new MemberMetadataAndStateImpl(
            Optional.empty(), Optional.empty(), member.get("process_id").asText(), Map.of(),
            StreamsGroupLine.tasks(member, "active"), StreamsGroupLine.tasks(member, "standby"),
            Map.of(), StreamsGroupLine.offsets(member), Map.of())));
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
        final AssignmentConfigsImpl configs = AssignmentConfigsImpl.fromMap(
            Map.of("num.standby.replicas", Integer.toString(group.standbys)));
        new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), topology).members()
            .forEach((id, own) -> group.assigned(id, own.activeTasks(), own.standbyTasks()));
        return group.answer();
    }
}
