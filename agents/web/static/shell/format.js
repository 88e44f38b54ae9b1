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

/** A size in bytes: 1.2 GB. */
export function bytes(value) {
  if (!known(value)) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB"];
  let scaled = value;
  while (Math.abs(scaled) >= 999.5 && units.length > 1) {
    scaled /= 1000;
    units.shift();
  }
  return `${scaled.toFixed(units[0] !== "B" && scaled < 9.95 ? 1 : 0)} ${units[0]}`;
}

/** A duration, given in seconds, in its two largest units: 42 s, 3 min 5 s, 22 min, 2 h 10 min. */
export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const rest = Math.max(0, Math.round(seconds));
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => rest >= size);
  if (first < 0) return "0 s";
  const [name, size] = units[first];
  const [small, unit] = rest >= 600 && name === "min" ? ["", 0] : units[first + 1] ?? ["", 0];
  const remainder = unit ? Math.floor((rest % size) / unit) : 0;
  return `${Math.floor(rest / size)} ${name}${remainder ? ` ${remainder} ${small}` : ""}`;
}

/** A moment against now, both in ms: in 42 s, now, overdue by 5 s. */
export function countdown(dueMs, nowMs) {
  const seconds = Math.round((dueMs - nowMs) / 1000);
  if (seconds === 0) return "now";
  return seconds > 0 ? `in ${duration(seconds)}` : `overdue by ${duration(-seconds)}`;
}

/** How long ago a moment was, both in ms. */
export const ago = (atMs, nowMs) => `${duration((nowMs - atMs) / 1000)} ago`;

const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const dated = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

/** A moment as this place's clocks have it: 14:02:31. */
export const clockTime = (atMs) => (known(atMs) ? hours.format(atMs) : UNKNOWN);

/** The day of a moment: 18 Nov. */
export const day = (atMs) => days.format(atMs);

/** A moment with its day, for titles. */
export const moment = (atMs) => (known(atMs) ? dated.format(atMs) : UNKNOWN);

/** The share of a lag bar: 0 is caught up, one half is exactly the acceptable lag, 1 is endless. */
export function lagShare(lag, acceptable) {
  if (!known(lag)) return 0;
  return lag === 0 ? 0 : lag / (lag + Math.max(0, acceptable ?? 0));
}

/** Order by embedded numbers: 0_2 before 0_10. */
export const naturally = new Intl.Collator("en", { numeric: true }).compare;
