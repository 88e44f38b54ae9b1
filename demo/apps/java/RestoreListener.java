package caughtup.demo;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StandbyUpdateListener;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.processor.TaskId;

/**
 * Keeps what an instance restores: each copy of a store that starts, as an active or as a standby,
 * from where to where, and how it ended.
 *
 * <p>An instance's threads call it, and whoever drives the JVM asks for {@link #lines}.
 */
public final class RestoreListener implements StateRestoreListener, StandbyUpdateListener {
    private static final class Copy {
        final String role;
        final String store;
        final TopicPartition changelog;
        final long start;
        final long startedMs = System.currentTimeMillis();
        /** Where it is to get: for a standby what its first batch found, -1 before that. */
        long end;
        /** The last offset that was loaded, -1 before the first. */
        long loaded = -1;
        /** When it had loaded what was there at its start, -1 before that. */
        long reachedMs = -1;
        String ending = "";

        Copy(final String role, final String store, final TopicPartition changelog,
            final long start, final long end) {
            this.role = role;
            this.store = store;
            this.changelog = changelog;
            this.start = start;
            this.end = end;
        }

        void load(final long offset) {
            loaded = offset;
            if (reachedMs < 0 && loaded + 1 >= end) {
                reachedMs = System.currentTimeMillis();
            }
        }

        String line() {
            return String.join("\t", role, store, changelog.topic(),
                Integer.toString(changelog.partition()), Long.toString(start), Long.toString(end),
                Long.toString(loaded), Long.toString(startedMs), Long.toString(reachedMs), ending);
        }
    }

    private final List<Copy> copies = new ArrayList<>();
    /** The last copy of each store partition. */
    private final Map<String, Copy> newest = new HashMap<>();

    /** Returns a line for each copy so far, in the order in which they started, tabs between. */
    public synchronized String lines() {
        final StringBuilder lines = new StringBuilder();
        copies.forEach(copy -> lines.append(copy.line()).append('\n'));
        return lines.toString();
    }

    @Override
    public synchronized void onRestoreStart(final TopicPartition changelog, final String store,
        final long start, final long end) {
        begin(new Copy("active", store, changelog, start, end));
    }

    @Override
    public synchronized void onBatchRestored(final TopicPartition changelog, final String store,
        final long offset, final long records) {
        newest(changelog, store).load(offset);
    }

    @Override
    public synchronized void onRestoreEnd(final TopicPartition changelog, final String store,
        final long records) {
        final Copy copy = newest(changelog, store);
        copy.ending = "RESTORED";
        if (copy.reachedMs < 0) {
            copy.reachedMs = System.currentTimeMillis();
        }
    }

    @Override
    public synchronized void onRestoreSuspended(final TopicPartition changelog, final String store,
        final long records) {
        newest(changelog, store).ending = "SUSPENDED";
    }

    @Override
    public synchronized void onUpdateStart(final TopicPartition changelog, final String store,
        final long start) {
        begin(new Copy("standby", store, changelog, start, -1));
    }

    @Override
    public synchronized void onBatchLoaded(final TopicPartition changelog, final String store,
        final TaskId task, final long offset, final long records, final long end) {
        final Copy copy = newest(changelog, store);
        if (copy.end < 0) {
            copy.end = end;
        }
        copy.load(offset);
    }

    @Override
    public synchronized void onUpdateSuspended(final TopicPartition changelog, final String store,
        final long offset, final long end, final SuspendReason reason) {
        newest(changelog, store).ending = reason.name();
    }

    private void begin(final Copy copy) {
        copies.add(copy);
        newest.put(copy.store + copy.changelog, copy);
    }

    private Copy newest(final TopicPartition changelog, final String store) {
        return newest.get(store + changelog);
    }
}
