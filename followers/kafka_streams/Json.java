package caughtup;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import com.fasterxml.jackson.databind.ser.std.ToStringSerializer;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.streams.processor.TaskId;

/**
 * JSON as RFC 8259 has it, strictly: one value, in UTF-8, no name twice in an object.
 *
 * <p>Jackson reads and writes it, which Kafka Streams itself needs at run time. A record may hold
 * anything, so the depth and the length of numbers are bounded, and nothing but {@link Malformed}
 * is thrown.
 */
final class Json {
    /** Deeper values are refused. A recommendation has 6 levels. */
    static final int MAX_DEPTH = 64;
    private static final int MAX_NUMBER = 100;

    private static final ObjectMapper JACKSON = JsonMapper.builder(JsonFactory.builder()
            .streamReadConstraints(StreamReadConstraints.builder()
                .maxNestingDepth(MAX_DEPTH).maxNumberLength(MAX_NUMBER).build())
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            // Interned names would outlive the record that they come from.
            .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
            // Half a surrogate pair has no UTF-8, but an escape.
            .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
            .build())
        .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
        .addModule(new SimpleModule().addSerializer(TaskId.class, ToStringSerializer.instance))
        .build();

    /** What is wrong with a text, in a few words, none of which are the text's own. */
    static final class Malformed extends Exception {
        private static final long serialVersionUID = 1L;

        Malformed(final String message) {
            super(message);
        }
    }

    private Json() { }

    /** Reads one value. Characters, since of bytes Jackson takes more encodings than UTF-8. */
    static JsonNode read(final byte[] utf8) throws Malformed {
        final JsonNode value;
        try {
            value = JACKSON.readTree(new InputStreamReader(
                new ByteArrayInputStream(utf8), StandardCharsets.UTF_8.newDecoder()));
        } catch (final CharacterCodingException problem) {
            throw new Malformed("not UTF-8");
        } catch (final JsonProcessingException problem) {
            // Its message quotes the text, which would get into log lines.
            throw new Malformed("not JSON: " + problem.getClass().getSimpleName()
                + (problem.getLocation() == null ? ""
                    : " at character " + problem.getLocation().getCharOffset()));
        } catch (final IOException | RuntimeException problem) {
            throw new Malformed("not JSON: " + problem.getClass().getSimpleName());
        }
        if (value.isMissingNode()) {
            throw new Malformed("the text is empty");
        }
        return value;
    }

    /** Writes Maps, Iterables, Strings, Numbers, Booleans, null, JSON, and tasks by their ids. */
    static String write(final Object value) {
        try {
            return JACKSON.writeValueAsString(value);
        } catch (final JsonProcessingException impossible) {
            throw new IllegalArgumentException(impossible);
        }
    }
}
