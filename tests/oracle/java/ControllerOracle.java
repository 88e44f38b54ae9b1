package org.apache.kafka.controller;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.Collectors;
import oracles.Pipe;
import org.apache.kafka.common.DirectoryId;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionChangeRecord;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.metadata.Replicas;
import org.apache.kafka.metadata.placement.PartitionAssignment;
import org.apache.kafka.server.common.MetadataVersion;

/**
 * The published controller's own classes behind a pipe: a partition's state and what happens to it
 * a line in, its state after that a line out. Fields end with a bar, brokers with a comma.
 */
public final class ControllerOracle {
    private static final int FIELDS = 9;

    public static void main(final String[] arguments) throws Exception {
        Pipe.answer(line -> answer(line.split("\\|", FIELDS)));
    }

    private static String answer(final String[] given) throws ReflectiveOperationException {
        final PartitionRegistration partition = new PartitionRegistration.Builder()
            .setReplicas(array(given[1]))
            .setDirectories(DirectoryId.unassignedArray(brokers(given[1]).size()))
            .setIsr(array(given[2]))
            .setLeader(Integer.valueOf(given[3]))
            .setLeaderEpoch(Integer.valueOf(given[4]))
            .setAddingReplicas(array(given[5]))
            .setRemovingReplicas(array(given[6]))
            .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
            .setPartitionEpoch(0)
            .build();
        final Set<Integer> alive = Set.copyOf(brokers(given[8]));
        final PartitionChangeBuilder change = builder(partition, alive::contains);
        switch (given[0]) {
            case "reassign":
                reassign(partition, brokers(given[7]), change);
                break;
            case "isr":
                change.setTargetIsr(brokers(given[7]));
                break;
            default:
                if (!PartitionReassignmentReplicas.isReassignmentInProgress(partition)) {
                    return "refused";
                }
                final PartitionReassignmentRevert revert = new PartitionReassignmentRevert(partition);
                if (given[0].equals("revert")) {
                    return text(revert.replicas()) + "|" + text(revert.isr()) + "|" + revert.unclean();
                }
                if (revert.unclean()) {
                    return "refused";
                }
                change.setTargetIsr(revert.isr()).setTargetReplicas(revert.replicas());
                change.setTargetRemoving(List.of()).setTargetAdding(List.of());
        }
        return state(change.build().map(one -> partition.merge((PartitionChangeRecord) one.message()))
            .orElse(partition));
    }

    private static void reassign(
        final PartitionRegistration partition,
        final List<Integer> wanted,
        final PartitionChangeBuilder change
    ) {
        final PartitionReassignmentReplicas replicas = new PartitionReassignmentReplicas(
            assignment(Replicas.toList(partition.replicas)), assignment(wanted));
        change.setTargetReplicas(replicas.replicas());
        if (!replicas.removing().isEmpty()) {
            change.setTargetRemoving(replicas.removing());
        }
        if (!replicas.adding().isEmpty()) {
            change.setTargetAdding(replicas.adding());
        }
    }

    private static PartitionAssignment assignment(final List<Integer> replicas) {
        return new PartitionAssignment(replicas, broker -> DirectoryId.UNASSIGNED);
    }

    /** From 4.3 on the builder is told at once that there are no eligible leader replicas. */
    private static PartitionChangeBuilder builder(
        final PartitionRegistration partition, final IntPredicate acceptable
    ) throws ReflectiveOperationException {
        final MetadataVersion[] versions = MetadataVersion.values();
        final Object[] values = {
            partition, Uuid.ONE_UUID, 0, acceptable, versions[versions.length - 1], 1, false,
        };
        final Constructor<?> made = PartitionChangeBuilder.class.getConstructors()[0];
        final Object[] fitting = Arrays.copyOf(values, made.getParameterCount());
        return ((PartitionChangeBuilder) made.newInstance(fitting))
            .setDefaultDirProvider(broker -> DirectoryId.UNASSIGNED);
    }

    private static String state(final PartitionRegistration partition) {
        return String.join("|",
            text(Replicas.toList(partition.replicas)),
            text(Replicas.toList(partition.isr)),
            String.valueOf(partition.leader),
            String.valueOf(partition.leaderEpoch),
            text(Replicas.toList(partition.addingReplicas)),
            text(Replicas.toList(partition.removingReplicas)));
    }

    private static List<Integer> brokers(final String field) {
        return Arrays.stream(field.split(",")).filter(one -> !one.isEmpty()).map(Integer::valueOf)
            .collect(Collectors.toList());
    }

    private static int[] array(final String field) {
        return Replicas.toArray(brokers(field));
    }

    private static String text(final List<Integer> brokers) {
        return brokers.stream().map(String::valueOf).collect(Collectors.joining(","));
    }
}
