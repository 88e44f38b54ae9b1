// Follows a view: pushed by the service, or polled if pushing doesn't work.

import { served } from "./address.js";

const SCHEMA = 2;
const POLL_MS = 2000;
const RETRY_STREAM_MS = 15000;
/** The service pushes about once a second: a stream silent for this long is dead. */
const SILENT_MS = 20000;

/**
 * Follow a view (`query`: as `view=overview`) until the returned function is called. `onState(state)`
 * gets each state; `onLink(link)` gets `live` (pushed), `polling`, `lost`, or `unreadable` (an unknown
 * format).
 */
export function follow(query, onState, onLink) {
  let source = null;
  let over = false;
  let pollTimer = null;
  let retryTimer = null;
  let silence = null;

  const take = (text) => {
    let state;
    try {
      state = JSON.parse(text);
    } catch {
      onLink("unreadable");
      return false;
    }
    if (state?.schema !== SCHEMA) {
      onLink("unreadable");
      return false;
    }
    onState(state);
    return true;
  };

  const poll = async () => {
    clearTimeout(pollTimer);
    try {
      const answer = await fetch(served(`api/view?${query}`), { cache: "no-store" });
      const text = await answer.text();
      if (over || source?.heard) return; // a newer state was pushed meanwhile
      if (!answer.ok && !text.startsWith("{")) onLink("lost");
      else if (take(text)) onLink("polling");
    } catch {
      if (!over) onLink("lost");
    }
    if (!over && !source?.heard) pollTimer = setTimeout(poll, POLL_MS);
  };

  const open = () => {
    source?.close();
    source = new EventSource(served(`api/events?${query}`));
    source.addEventListener("state", (event) => {
      if (over) return;
      clearTimeout(pollTimer);
      clearTimeout(silence);
      silence = setTimeout(silent, SILENT_MS);
      event.target.heard = true;
      if (take(event.data)) onLink("live");
    });
    source.addEventListener("error", (event) => {
      if (over) return;
      event.target.heard = false;
      // The browser reconnects by itself, except after an answer that is no event stream.
      clearTimeout(retryTimer);
      if (source.readyState === EventSource.CLOSED) retryTimer = setTimeout(open, RETRY_STREAM_MS);
      poll();
    });
  };

  const silent = () => {
    source.heard = false;
    open();
    poll();
  };

  poll(); // the first state
  open();
  return () => {
    over = true;
    source.close();
    for (const timer of [pollTimer, retryTimer, silence]) clearTimeout(timer);
  };
}
