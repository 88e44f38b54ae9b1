// Names that are too long for their place: without what all share, and elided in their middle.

const SEPARATOR = /[-._:/@ ]/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}\u202a-\u202e\u2066-\u2069]/u;

/** A name inside a text (a title, a label): its direction, and what it overrides, ends with it. */
export const isolated = (name) => (RIGHT_TO_LEFT.test(name) ? `\u2068${name}\u2069` : name);

/** Cut a name to `most` characters, in its middle: both ends tell more. */
export function elided(name, most) {
  const characters = [...name];
  if (characters.length <= most) return name;
  const tail = Math.floor((most - 1) / 2);
  return `${characters.slice(0, most - 1 - tail).join("")}…${tail ? characters.slice(-tail).join("") : ""}`;
}

/**
 * Shorten names that stand below each other to `most` characters: `of(name)` has each one's, `common`
 * what was left out of all of them, as `prefix…suffix`. No two become the same.
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
    // Cut where they differ: begin there instead, or number those that differ beyond that, too.
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

/** What all begin with, up to and with a separator, so that words stay whole. */
function sharedStart(names) {
  let at = charactersShared(names);
  while (at > 0 && !SEPARATOR.test(names[0][at - 1])) at -= 1;
  return names.some((name) => name.length === at) ? "" : names[0].slice(0, at);
}

function sharedEnd(names) {
  const reversed = (text) => [...text].reverse().join("");
  return reversed(sharedStart(names.map(reversed)));
}
