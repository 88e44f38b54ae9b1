// Shortened names: without their common prefix and suffix, and elided in their middle.

const SEPARATOR = /[-._:/@ ]/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}\u202a-\u202e\u2066-\u2069]/u;

/** Isolate the text direction of a name inside a text. */
export const isolated = (name) => (RIGHT_TO_LEFT.test(name) ? `\u2068${name}\u2069` : name);

/** Cut a name to `most` characters, in its middle. */
export function elided(name, most) {
  const characters = [...name];
  if (characters.length <= most) return name;
  const tail = Math.floor((most - 1) / 2);
  return `${characters.slice(0, most - 1 - tail).join("")}…${tail ? characters.slice(-tail).join("") : ""}`;
}

/**
 * Shorten names of one column to `most` characters, all different: `of(name)` returns a shortened
 * name, `common` is what was left out of all, as `prefix…suffix`.
 */
export function shortened(names, most) {
  const all = [...new Set(names)];
  if (all.every((name) => [...name].length <= most)) return { of: (name) => name, common: "" };
  const prefix = all.length > 1 ? sharedStart(all) : "";
  const suffix = all.length > 1 ? sharedEnd(all.map((name) => name.slice(prefix.length))) : "";
  const short = new Map(all.map((name) =>
    [name, elided(name.slice(prefix.length, name.length - suffix.length), most)]));
  const bySame = Map.groupBy(all, (name) => short.get(name));
  for (const same of [...bySame.values()].filter((each) => each.length > 1)) {
    // The cut part differs: cut elsewhere, or number names that are still equal.
    const start = charactersShared(same);
    for (const name of same) short.set(name, `…${elided(name.slice(start), most - 1)}`);
    if (new Set(same.map((name) => short.get(name))).size < same.length) {
      same.forEach((name, at) => short.set(name, `${elided(name, most - 4)} #${at + 1}`));
    }
  }
  return { of: (name) => short.get(name) ?? elided(name, most), common: prefix || suffix ? `${prefix}…${suffix}` : "" };
}

function charactersShared(names) {
  const [first, ...others] = names;
  let at = 0;
  while (at < first.length && others.every((name) => name[at] === first[at])) at += 1;
  return at;
}

/** Return the common prefix, up to a separator, so that words stay whole. */
function sharedStart(names) {
  let at = charactersShared(names);
  while (at > 0 && !SEPARATOR.test(names[0][at - 1])) at -= 1;
  return names.some((name) => name.length === at) ? "" : names[0].slice(0, at);
}

function sharedEnd(names) {
  const reversed = (text) => [...text].reverse().join("");
  return reversed(sharedStart(names.map(reversed)));
}
