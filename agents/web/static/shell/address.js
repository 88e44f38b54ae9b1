// Addresses of the page: the view, and its query string.

/** The base path: the service's root, or a proxy's prefix. */
const ROOT = new URL(".", document.baseURI);
const VIEWS = new Map([
  ["", "overview"], ["index.html", "overview"], ["reassignments", "reassignments"], ["transactions", "transactions"], ["connect", "connect"],
  ["streams", "streams"], ["health", "health"],
]);

/** Return the address of an endpoint such as `api/recent`. */
export const served = (path) => new URL(path, ROOT).href;

/** Return the address of a group's page, null for a name that no path can have. */
export function toGroup(name) {
  if (name === "" || name === "." || name === "..") return null;
  return served(`groups/${encodeURIComponent(name.toWellFormed?.() ?? name)}`);
}

/** Return the current view, its group, and the query, from the address bar. */
export function here() {
  const query = new URLSearchParams(location.search);
  const [first, ...rest] = location.pathname.slice(ROOT.pathname.length).split("/");
  if (first === "groups" && rest.join("/")) return { view: "group", group: decoded(rest.join("/")), query };
  return { view: rest.join("") ? "nowhere" : VIEWS.get(first) ?? "nowhere", query };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // malformed percent-encoding
  }
}

/** Return whether the page can show an address without reloading. */
function isOurs(url) {
  if (url.origin !== ROOT.origin || !url.pathname.startsWith(ROOT.pathname)) return false;
  const [first, ...rest] = url.pathname.slice(ROOT.pathname.length).split("/");
  return first === "groups" ? rest.join("") !== "" : VIEWS.has(first) && rest.length === 0;
}

/** Call `onMove` when the user follows a link of the page, or goes back or forward. */
export function installLinks(onMove) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href]");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target) return;
    const url = new URL(link.href);
    if (!isOurs(url) || url.hash) return;
    event.preventDefault();
    if (url.href !== location.href) history.pushState(null, "", url);
    onMove({ forward: true });
  });
  addEventListener("popstate", () => onMove({ forward: false }));
}

/** Set parameters of the query string in place; null removes one. */
export function choose(choices) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(choices)) {
    if (value === null || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  if (url.href !== location.href) history.replaceState(null, "", url);
}
