// Numbers, times and names as people read them. Unknown is an en dash, never 0.

export const UNKNOWN = "–";

const whole = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

export const known = (value) => value !== null && value !== undefined;

/** A count in full: 12,345. */
export const count = (value) => (known(value) ? whole.format(value) : UNKNOWN);

/** A count in a few characters: 12.3K. */
export const short = (value) => (known(value) ? compact.format(value) : UNKNOWN);

/** A count with its noun: 1 task, 2 tasks, 2 copies. */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** A size in bytes, as models/durations.py writes it: 1.2 GB. */
export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let scaled = value;
  while (Math.abs(scaled) >= 999.5 && units.length > 1) {
    scaled /= 1000;
    units.shift();
  }
  return `${rounded(scaled, units[0] !== "B" && scaled < 9.95 ? 1 : 0)} ${units[0]}`;
}

/** A duration, given in seconds, as models/durations.py writes it: 4.2 s, 42 s, 22 min, 2.2 h. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 10) return `${rounded(seconds, 1)} s`;
  if (seconds < 120) return `${rounded(seconds)} s`;
  if (seconds < 7_200) return `${rounded(seconds / 60)} min`;
  return `${rounded(seconds / 3600, 1).replace(/\B(?=(\d{3})+(?!\d))/g, ",")} h`;
}

/** Round as Python does, half to even. */
function rounded(value, digits = 0) {
  const text = value.toFixed(digits);
  const between = Math.abs(value * (digits ? 4 : 2) % 2) === 1;
  return between && Number(text.at(-1)) % 2 ? (Number(text) - Math.sign(value) / 10 ** digits).toFixed(digits) : text;
}

const brokers = (each) => (each ?? []).join(",");
const least = (isLeast, text) => (isLeast ? `≥ ${text}` : text);
/** The formats of figures, by unit: the units of agents/units.py. A newer service may send others. */
const UNITS = {
  text: (value) => (known(value) ? String(value) : ""),
  number: (value) => count(value),
  known: (value) => count(value),
  lag: (lag, atLeast) => least(!known(lag) && known(atLeast), count(lag ?? atLeast)),
  age: (seconds, method) => least(method === "at_least", duration(seconds)),
  committed: (offset, has, shareStart) => (known(shareStart) ? `${count(offset)} from ${count(shareStart)}` : count(offset)),
  since: (atMs, nowMs) => (known(atMs) ? duration((nowMs - atMs) / 1000) : UNKNOWN),
  until: (atMs, nowMs) => (known(atMs) ? countdown(atMs, nowMs) : UNKNOWN),
  "log end": (end, committed, verdict) =>
    (known(end) && committed > end && verdict !== "rewound" ? least(true, count(committed)) : count(end)),
  state: (word) => word ?? UNKNOWN,
  count: (some) => String(some.length),
  names: (...some) => some.flat().join(" "),
  list: (some) => some.join(", "),
  leader: (leads) => (leads ? "leader" : ""),
  "yes or no": (holds) => (holds ? "yes" : "no"),
  share: (share) => (known(share) ? `${rounded(share * 100)}%` : ""),
  "broker is": (away, missing, silent) =>
    [away && "away", missing && "without this replica", silent && "silent"].filter(Boolean).join(", "),
  "seconds to go": (atMs, nowMs) => (known(atMs) ? duration(Math.max(0, atMs - nowMs) / 1000) : ""),
  "time since": (atMs, nowMs) => (known(atMs) ? duration(Math.max(0, nowMs - atMs) / 1000) : ""),
  transaction: (name, producer) => name ?? `producer id ${producer}`,
  held: (partitions) => (partitions.length ? `${partitions[0][0]}-${partitions[0][1]}${
    partitions.length > 1 ? ` and ${count(partitions.length - 1)} more` : ""}` : ""),
  partition: (topic, partition) => `${topic}-${partition}`,
  route: (source, target) => `${brokers(source)} → ${brokers(target)}`,
  of: (some, every) => `${every.filter((each) => some.includes(each)).length} of ${every.length}`,
  left: (size, offsets) => (known(size) ? bytes(size) : known(offsets) ? plural(offsets, "offset") : "unknown"),
  "records/s": (rate) => (known(rate) ? count(Math.round(rate)) : UNKNOWN),
  "bytes/s": (rate) => (known(rate) ? `${bytes(rate)}/s` : ""),
  "time to go": (seconds, never) => (never ? "never" : known(seconds) ? duration(seconds) : ""),
};

const TIMES = new Set(["since", "until", "seconds to go", "time since"]);

/** Return figures in their unit at `nowMs`, empty if unknown. */
export const written = (unit, values, nowMs) =>
  (UNITS[unit] ?? UNITS.text)(...values, ...(TIMES.has(unit) ? [nowMs] : []));

/** A time relative to now, both in ms: in 42 s, now, overdue by 5 s. */
export function countdown(dueMs, nowMs) {
  const seconds = Math.round((dueMs - nowMs) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `overdue by ${duration(-seconds)}`;
}

/** How long ago a time was, both in ms. */
export const ago = (atMs, nowMs) => `${duration(Math.max(0, nowMs - atMs) / 1000)} ago`;

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dated = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A time in the local time zone: 14:02:31. */
export const clockTime = (atMs) => (known(atMs) ? hours.format(atMs) : UNKNOWN);

/** The day of a time: 18 Nov. */
export const day = (atMs) => days.format(atMs);

/** A time with its day, for titles. */
export const moment = (atMs) => (known(atMs) ? dated.format(atMs) : UNKNOWN);

/** The share of a lag bar: 0 is caught up, one half is exactly the acceptable lag, 1 is endless. */
export function lagShare(lag, acceptable) {
  if (!known(lag)) return 0;
  return lag === 0 ? 0 : lag / (lag + Math.max(0, acceptable ?? 0));
}

/** Order by embedded numbers: 0_2 before 0_10. */
export const naturally = new Intl.Collator("en", { numeric: true }).compare;
