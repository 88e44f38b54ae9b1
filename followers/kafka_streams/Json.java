package caughtup;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * JSON as RFC 8259 has it, strictly: one value, in UTF-8, no name twice in an object.
 *
 * <p>An object is a LinkedHashMap, an array an ArrayList, a whole number that fits a Long, any
 * other number a Double. What comes from a topic may be anything, so the depth and the length of
 * numbers are bounded, and nothing but {@link Malformed} is thrown.
 */
final class Json {
    /** Deeper values are refused. A recommendation has 6 levels. */
    static final int MAX_DEPTH = 64;
    private static final int MAX_NUMBER = 100;
    private static final int CHUNK = 8192;

    /** What is wrong with a text, in a few words. */
    static final class Malformed extends Exception {
        private static final long serialVersionUID = 1L;

        Malformed(final String message) {
            super(message);
        }
    }

    private final String text;
    private int at;

    private Json(final String text) {
        this.text = text;
    }

    /** Reads one value. */
    static Object read(final byte[] utf8) throws Malformed {
        requireText(utf8);
        final String text = new String(utf8, StandardCharsets.UTF_8);
        final Json json = new Json(text);
        final Object value = json.value(0);
        json.skipSpace();
        if (json.at < text.length()) {
            throw json.wrong("more than one value");
        }
        return value;
    }

    /** Decodes piece by piece: the whole as characters would take as much again twice. */
    private static void requireText(final byte[] utf8) throws Malformed {
        final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
        final ByteBuffer bytes = ByteBuffer.wrap(utf8);
        final CharBuffer characters = CharBuffer.allocate(CHUNK);
        while (true) {
            characters.clear();
            final CoderResult result = decoder.decode(bytes, characters, true);
            if (result.isError()) {
                throw new Malformed("not UTF-8");
            }
            if (result.isUnderflow()) {
                return;
            }
        }
    }

    private Object value(final int depth) throws Malformed {
        skipSpace();
        if (depth > MAX_DEPTH) {
            throw wrong("nested too deeply");
        }
        switch (peek()) {
            case '{': return object(depth);
            case '[': return array(depth);
            case '"': return string();
            case 't': return word("true", Boolean.TRUE);
            case 'f': return word("false", Boolean.FALSE);
            case 'n': return word("null", null);
            default: return number();
        }
    }

    private Map<String, Object> object(final int depth) throws Malformed {
        final Map<String, Object> map = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (taken('}')) {
            return map;
        }
        do {
            skipSpace();
            if (peek() != '"') {
                throw wrong("a name is missing");
            }
            final String name = string();
            skipSpace();
            if (!taken(':')) {
                throw wrong("a colon is missing");
            }
            if (map.containsKey(name)) {
                throw wrong("a name is given twice");
            }
            map.put(name, value(depth + 1));
            skipSpace();
        } while (taken(','));
        if (!taken('}')) {
            throw wrong("an object does not end");
        }
        return map;
    }

    private List<Object> array(final int depth) throws Malformed {
        final List<Object> list = new ArrayList<>();
        at++;
        skipSpace();
        if (taken(']')) {
            return list;
        }
        do {
            list.add(value(depth + 1));
            skipSpace();
        } while (taken(','));
        if (!taken(']')) {
            throw wrong("an array does not end");
        }
        return list;
    }

    private String string() throws Malformed {
        final StringBuilder read = new StringBuilder();
        at++;
        while (true) {
            final char character = peek();
            at++;
            if (character == '"') {
                return read.toString();
            }
            if (character < ' ') {
                throw wrong("a string does not end");
            }
            read.append(character == '\\' ? escaped() : character);
        }
    }

    private char escaped() throws Malformed {
        final char character = peek();
        at++;
        final int simple = "\"\\/bfnrt".indexOf(character);
        if (simple >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(simple);
        }
        if (character != 'u' || at + 4 > text.length()) {
            throw wrong("no such escape");
        }
        int code = 0;
        for (final int end = at + 4; at < end; at++) {
            final char digit = text.charAt(at);
            // Character.digit alone would take other scripts' digits.
            final int number = digit < 128 ? Character.digit(digit, 16) : -1;
            if (number < 0) {
                throw wrong("no such escape");
            }
            code = code * 16 + number;
        }
        return (char) code;
    }

    private Object number() throws Malformed {
        final int start = at;
        taken('-');
        if (!taken('0')) {
            digits();
        }
        boolean whole = true;
        if (taken('.')) {
            whole = false;
            digits();
        }
        if (taken('e') || taken('E')) {
            whole = false;
            if (!taken('+')) {
                taken('-');
            }
            digits();
        }
        if (at - start > MAX_NUMBER) {
            throw wrong("a number is too long");
        }
        final String read = text.substring(start, at);
        if (whole && read.length() <= 20) {
            try {
                return Long.parseLong(read);
            } catch (final NumberFormatException tooLarge) {
                return Double.parseDouble(read);
            }
        }
        return Double.parseDouble(read);
    }

    private void digits() throws Malformed {
        final int start = at;
        while (at < text.length() && text.charAt(at) >= '0' && text.charAt(at) <= '9') {
            at++;
        }
        if (at == start) {
            throw wrong("no JSON value");
        }
    }

    private Object word(final String word, final Object value) throws Malformed {
        if (!text.startsWith(word, at)) {
            throw wrong("no JSON value");
        }
        at += word.length();
        return value;
    }

    private void skipSpace() {
        while (at < text.length() && " \t\n\r".indexOf(text.charAt(at)) >= 0) {
            at++;
        }
    }

    private char peek() throws Malformed {
        if (at >= text.length()) {
            throw wrong("the text ends too early");
        }
        return text.charAt(at);
    }

    private boolean taken(final char wanted) {
        final boolean there = at < text.length() && text.charAt(at) == wanted;
        at += there ? 1 : 0;
        return there;
    }

    private Malformed wrong(final String what) {
        return new Malformed(what + ", at character " + at);
    }
}
