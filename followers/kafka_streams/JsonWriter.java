package caughtup;

import java.util.Iterator;
import java.util.Map;

/** Writes JSON: Maps, Iterables, whole Numbers, Booleans and null; of anything else its text. */
final class JsonWriter {
    private JsonWriter() { }

    static String write(final Object value) {
        final StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(final Object value, final StringBuilder out) {
        if (value instanceof Map) {
            char before = '{';
            for (final Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                quote(entry.getKey().toString(), out.append(before));
                write(entry.getValue(), out.append(':'));
                before = ',';
            }
            out.append(before == '{' ? "{}" : "}");
        } else if (value instanceof Iterable) {
            out.append('[');
            final Iterator<?> items = ((Iterable<?>) value).iterator();
            while (items.hasNext()) {
                write(items.next(), out);
                out.append(items.hasNext() ? "," : "");
            }
            out.append(']');
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            out.append(value);
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(final String text, final StringBuilder out) {
        out.append('"');
        for (int i = 0; i < text.length(); i++) {
            final char character = text.charAt(i);
            if (character == '"' || character == '\\') {
                out.append('\\').append(character);
            } else if (character < ' ' || Character.isSurrogate(character)) {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        out.append('"');
    }
}
