// Data of charts: the last hours, requested every ten seconds, or days of the history.

import { served } from "./address.js";

const EVERY_MS = 10_000;
const AFTER_A_FAILURE_MS = 30_000;
/** Days change slowly, and take the service a process to read. */
const DAYS_EVERY_MS = 300_000;

/**
 * Request `path` repeatedly until the returned function is called; `onRecent` gets each answer, or
 * `{ problem }` if the history can't be read.
 */
export function followRecent(path, onRecent) {
  const days = path.includes("/history?");
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
        next = days ? DAYS_EVERY_MS : EVERY_MS;
      } else if (days) {
        const problem = await why(answer);
        if (!over) onRecent({ problem });
      }
    } catch {
      // The view's own connection reports the problem.
    }
    if (!over) timer = setTimeout(ask, next);
  };
  ask();
  return () => { over = true; clearTimeout(timer); };
}

async function why(answer) {
  const said = await answer.text();
  try {
    return String(JSON.parse(said).error);
  } catch {
    return said.trim() || `the service answers ${answer.status}`;
  }
}
