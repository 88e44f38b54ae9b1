package caughtup;

import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Header;

/** A record for the group as it arrived; a value that is too large is let go of at once. */
final class ArrivedRecord {
    private static final String MALFORMED = "the recommendation is malformed: ";

    final int partition;
    final long timestamp;
    private final boolean tombstone;
    private final int size;
    private final byte[] value;
    private final byte[] signature;

    ArrivedRecord(final ConsumerRecord<byte[], byte[]> record) {
        partition = record.partition();
        timestamp = record.timestamp();
        tombstone = record.value() == null;
        size = tombstone ? 0 : record.value().length;
        value = size > Recommendation.MAX_BYTES ? null : record.value();
        final Header header = record.headers().lastHeader(SigningKeys.HEADER);
        signature = header == null ? null : header.value();
    }

    /** Reads it for what it is worth: a recommendation, or an objection to it. */
    Object read(final FollowerConfig config, final String cluster) {
        if (tombstone) {
            return new Rules.Objection("no_recommendation",
                "the recommendation for " + config.group + " was withdrawn");
        }
        if (value == null) {
            return new Rules.Objection("malformed", MALFORMED + size + " bytes");
        }
        try {
            final Rules.Objection forgery = forgery(config, cluster);
            return forgery != null ? forgery : Recommendation.read(value, config.group);
        } catch (final Json.Malformed malformed) {
            return new Rules.Objection("malformed", MALFORMED + malformed.getMessage());
        }
    }

    private Rules.Objection forgery(final FollowerConfig config, final String cluster) {
        if (config.signingKeyFile == null) {
            return null;
        }
        try {
            return SigningKeys.of(Path.of(config.signingKeyFile))
                .forgery(cluster, config.group, value, signature);
        } catch (final SigningKeys.BadKeyFile | InvalidPathException problem) {
            return new Rules.Objection("no_signing_key", FollowerConfig.SIGNING_KEY_FILE
                + " names no file of keys: " + problem.getMessage());
        }
    }
}
