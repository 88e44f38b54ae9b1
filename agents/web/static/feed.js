// The state as the service pushes it, or as it answers when pushing doesn't work.

const SCHEMA = 1;
const POLL_MS = 2000;
const RETRY_STREAM_MS = 15000;

/**
 * Follow the state. `onState(state)` gets each state; `onLink(link)` gets how it comes:
 * `live` (pushed), `polling`, `lost`, or `unreadable` (what came isn't a state this page knows).
 */
export function follow(onState, onLink) {
  let source = null;
  let pollTimer = null;

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
      const answer = await fetch("api/state", { cache: "no-store" });
      const text = await answer.text();
      if (source?.readyState === EventSource.OPEN) return; // pushed in the meantime: newer
      if (!answer.ok && !text.startsWith("{")) onLink("lost");
      else if (take(text)) onLink("polling");
    } catch {
      onLink("lost");
    }
    if (source?.readyState !== EventSource.OPEN) pollTimer = setTimeout(poll, POLL_MS);
  };

  const open = () => {
    if (source !== null) source.close();
    source = new EventSource("api/events");
    source.addEventListener("state", (event) => {
      clearTimeout(pollTimer);
      if (take(event.data)) onLink("live");
    });
    source.addEventListener("error", () => {
      // The browser reconnects by itself, except after an answer that is no event stream.
      if (source.readyState === EventSource.CLOSED) setTimeout(open, RETRY_STREAM_MS);
      poll();
    });
  };

  poll(); // the stream speaks on changes: the first state is asked for
  open();
}
