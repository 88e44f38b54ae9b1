// The last hours of a group or of the cluster, asked for every ten seconds.

import { served } from "./address.js";

const EVERY_MS = 10_000;
const AFTER_A_FAILURE_MS = 30_000;

/** Ask for `path` until the function that is returned is called; `onRecent` gets each answer. */
export function followRecent(path, onRecent) {
  let over = false;
  let timer = null;
  const ask = async () => {
    let next = AFTER_A_FAILURE_MS;
    try {
      const answer = await fetch(served(path), { cache: "no-store" });
      if (answer.ok) {
        const recent = await answer.json();
        if (over) return;
        if (Array.isArray(recent?.at_ms)) onRecent(recent);
        next = EVERY_MS;
      }
    } catch {
      // The view's own connection says what is wrong.
    }
    if (!over) timer = setTimeout(ask, next);
  };
  ask();
  return () => { over = true; clearTimeout(timer); };
}
