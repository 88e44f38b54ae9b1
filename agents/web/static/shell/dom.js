// Descriptions of elements, and the smallest change that makes the document match them.
//
// Text reaches the document through text nodes and setAttribute only, so nothing that Kafka
// clients choose (group, topic and client names) can become markup.

const SVG = "http://www.w3.org/2000/svg";
const DRAWN = new Set(["svg", "path", "line", "circle"]);

/** Describe an element. Children: descriptions, text, numbers; null, undefined and false are skipped. */
export function h(tag, props, ...children) {
  const kept = [];
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    kept.push(typeof child === "object" ? child : String(child));
  }
  return { tag, props: props ?? {}, children: kept };
}

const descriptions = new WeakMap();

/** Make the children of a node match descriptions; elements with the same `key` are kept. */
export function patch(parent, wanted) {
  const keyed = new Map();
  for (const node of parent.childNodes) {
    const key = descriptions.get(node)?.props.key;
    if (key !== undefined) keyed.set(key, node);
  }
  let at = parent.firstChild;
  for (const description of wanted) {
    const node = reuse(description, at, keyed) ?? create(description);
    if (node === at) at = at.nextSibling;
    else parent.insertBefore(node, at);
    if (typeof description === "string") {
      if (node.data !== description) node.data = description;
    } else {
      update(node, description);
    }
  }
  while (at !== null) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function reuse(description, at, keyed) {
  if (typeof description === "string") return at?.nodeType === Node.TEXT_NODE ? at : null;
  const { key } = description.props;
  if (key !== undefined) {
    const node = keyed.get(key);
    return descriptions.get(node)?.tag === description.tag ? node : null;
  }
  const known = at && descriptions.get(at);
  return known && known.props.key === undefined && known.tag === description.tag ? at : null;
}

function create(description) {
  if (typeof description === "string") return document.createTextNode(description);
  if (DRAWN.has(description.tag)) return document.createElementNS(SVG, description.tag);
  return document.createElement(description.tag);
}

function update(element, description) {
  const before = descriptions.get(element);
  if (before === description) return; // memoised: nothing changed
  const old = before?.props ?? {};
  for (const name of Object.keys(old)) {
    if (!(name in description.props)) set(element, name, null);
  }
  for (const [name, value] of Object.entries(description.props)) {
    if (old[name] !== value) set(element, name, value);
  }
  descriptions.set(element, description);
  if (!description.props.opaque) patch(element, description.children); // opaque: filled elsewhere
}

function set(element, name, value) {
  if (name === "key" || name === "opaque") return;
  // The content security policy forbids style attributes; custom properties go through CSSOM.
  if (name.startsWith("--")) {
    element.style.setProperty(name, value ?? "");
  } else if (name === "open") {
    element.open = Boolean(value);
  } else if (name === "value") {
    if (element.value !== value) element.value = value ?? "";
  } else if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

const memos = new Map();

/** Return the same description while `inputs` (a string) are the same, to skip comparing it. */
export function memo(key, inputs, describe) {
  const known = memos.get(key);
  if (known?.inputs === inputs) return known.description;
  const description = describe();
  memos.set(key, { inputs, description });
  return description;
}

/** Forget memoised descriptions, for another view. */
export const forget = () => memos.clear();
