package caughtup;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The keys that the service and its followers share, and whether a recommendation is signed with
 * one: HMAC-SHA256 over a purpose, the cluster, the group and the record's value.
 *
 * <p>models/security/signing.py signs and says in what form; no key is ever shown.
 */
final class SigningKeys {
    static final String HEADER = "caughtup-signature";
    private static final String PURPOSE = "caughtup recommended-assignments 1";
    private static final String ALGORITHM = "HmacSHA256";
    private static final int LEAST_BYTES = 32;
    private static final int MOST_FILE_BYTES = 1 << 16;
    private static final Pattern KEY = Pattern.compile(
        "([A-Za-z0-9._-]{1,64})[ \\t]+"
            + "((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)");
    private static final Pattern SIGNATURE =
        Pattern.compile("hmac-sha256:([A-Za-z0-9._-]{1,64}):([0-9a-f]{64})");

    /** What is wrong with a key file, without anything that is in it. */
    static final class BadKeyFile extends Exception {
        private static final long serialVersionUID = 1L;

        BadKeyFile(final String message) {
            super(message);
        }
    }

    private final Map<String, byte[]> secrets = new HashMap<>();

    /** Reads a file as it is now, so that keys can change while the application runs. */
    static SigningKeys of(final Path file) throws BadKeyFile {
        try {
            if (Files.size(file) > MOST_FILE_BYTES) {
                throw new BadKeyFile("it is larger than " + MOST_FILE_BYTES + " bytes");
            }
            return new SigningKeys(Files.readString(file));
        } catch (final IOException unreadable) {
            throw new BadKeyFile("it cannot be read: " + unreadable.getClass().getSimpleName());
        }
    }

    SigningKeys(final String text) throws BadKeyFile {
        final String[] lines = text.split("\n", -1);
        for (int number = 1; number <= lines.length; number++) {
            final String line = stripped(lines[number - 1]);
            if (!line.isEmpty() && line.charAt(0) != '#') {
                add(line, number);
            }
        }
        if (secrets.isEmpty()) {
            throw new BadKeyFile("the file has no key");
        }
    }

    private void add(final String line, final int number) throws BadKeyFile {
        final Matcher found = KEY.matcher(line);
        if (!found.matches()) {
            throw new BadKeyFile("line " + number + " is not a key's id and the key in base64");
        }
        final byte[] secret = Base64.getDecoder().decode(found.group(2));
        if (secret.length < LEAST_BYTES) {
            throw new BadKeyFile(
                "the key in line " + number + " is shorter than " + LEAST_BYTES + " bytes");
        }
        if (secrets.put(found.group(1), secret) != null) {
            throw new BadKeyFile("the key id in line " + number + " occurs twice");
        }
    }

    /** Says why a record isn't taken for the service's own; null when it is. */
    Rules.Objection forgery(
        final String cluster, final String group, final byte[] value, final byte[] header) {
        if (header == null) {
            return new Rules.Objection("not_signed", "the recommendation is not signed");
        }
        final Matcher found =
            SIGNATURE.matcher(new String(header, StandardCharsets.ISO_8859_1));
        if (!found.matches()) {
            return refused("has the wrong format");
        }
        final byte[] secret = secrets.get(found.group(1));
        if (secret == null) {
            return refused("is by a key that is not configured here");
        }
        final byte[] claimed = found.group(2).getBytes(StandardCharsets.US_ASCII);
        // In constant time: how long it takes says nothing of where they differ.
        return MessageDigest.isEqual(hex(digest(secret, cluster, group, value)), claimed)
            ? null : refused("does not match the record");
    }

    /** Signs the parts, each behind its length, so that none can pass for a piece of another. */
    private static byte[] digest(
        final byte[] secret, final String cluster, final String group, final byte[] value) {
        try {
            final Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(secret, ALGORITHM));
            for (final byte[] part : new byte[][] {
                utf8(PURPOSE), utf8(cluster), utf8(group), value}) {
                mac.update(ByteBuffer.allocate(Integer.BYTES).putInt(part.length).array());
                mac.update(part);
            }
            return mac.doFinal();
        } catch (final GeneralSecurityException impossible) {
            // Every Java has to have the algorithm.
            throw new IllegalStateException(impossible);
        }
    }

    private static byte[] hex(final byte[] bytes) {
        final StringBuilder hex = new StringBuilder();
        for (final byte one : bytes) {
            hex.append(Character.forDigit(one >> 4 & 15, 16)).append(Character.forDigit(one & 15, 16));
        }
        return hex.toString().getBytes(StandardCharsets.US_ASCII);
    }

    private static String stripped(final String line) {
        int start = 0;
        int end = line.length();
        while (start < end && " \t\r".indexOf(line.charAt(start)) >= 0) {
            start++;
        }
        while (end > start && " \t\r".indexOf(line.charAt(end - 1)) >= 0) {
            end--;
        }
        return line.substring(start, end);
    }

    private static byte[] utf8(final String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static Rules.Objection refused(final String message) {
        return new Rules.Objection(
            "bad_signature", "the recommendation's signature " + message);
    }
}
