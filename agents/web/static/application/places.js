// The layout of a heat map: cell sizes, rows, and the positions of cells.

const CELL_MOST = 14;
const TALL_PX = 640;
const GAP_PX = 8;

/** Lay out blocks in rows of as many tasks as fit: pieces with their place in px, and a cell's size. */
export function laidOut(blocks, clients, width, nameWidth) {
  const free = Math.max(60, width - nameWidth);
  const longest = Math.max(...blocks.map(({ tasks }) => tasks.length));
  const w = cellWidth(free, longest, clients);
  const fit = Math.max(1, Math.floor(free / w + 1e-6));
  const rows = blocks.reduce((sum, { tasks }) => sum + Math.ceil(tasks.length / fit), 0);
  const tall = Math.max(1, Math.min(CELL_MOST, Math.floor((TALL_PX - rows * GAP_PX) / (rows * clients))));
  const pieces = [];
  let y = 0;
  for (const { tasks } of blocks) {
    for (let at = 0; at < tasks.length; at += fit) {
      pieces.push({ tasks: tasks.slice(at, at + fit), x: nameWidth, y });
      y += clients * tall + GAP_PX;
    }
  }
  return { pieces, height: y, cell: { w, h: tall } };
}

/** Return the width of a cell in px: what fits, but at least 2, or 1 or less if that is too tall. */
function cellWidth(free, tasks, clients) {
  if (free / tasks >= 1) return Math.min(CELL_MOST, Math.floor(free / tasks));
  const tall = (width) => clients * Math.ceil((tasks * width) / free);
  return [2, 1].find((width) => tall(width) <= 2 * TALL_PX) ?? free / tasks;
}

/** Return the position of a client's task on the canvas, in px; null if it has none. */
export function boxOf({ pieces, cell, clients }, { task, client }) {
  const row = clients.findIndex((each) => each.process === client);
  for (const { tasks, x, y } of pieces) {
    const at = tasks.findIndex((each) => each.task === task);
    if (at >= 0 && row >= 0) return { x: x + at * cell.w, y: y + row * cell.h };
  }
  return null;
}

/** Return the task and client at a position of the canvas, in px; null for none. */
export function cellAt({ pieces, cell, clients }, x, y) {
  for (const { tasks, x: left, y: top } of pieces) {
    const [column, row] = [Math.floor((x - left) / cell.w), Math.floor((y - top) / cell.h)];
    if (column >= 0 && column < tasks.length && row >= 0 && row < clients.length) {
      return { task: tasks[column].task, client: clients[row].process };
    }
  }
  return null;
}

/** Return the cell that a key moves the cursor to, the first without a cursor; null for other keys. */
export function walked({ pieces, clients, cursor }, key) {
  const tasks = pieces.flatMap((piece) => piece.tasks);
  const column = tasks.findIndex((each) => each.task === cursor?.task);
  const row = clients.findIndex((each) => each.process === cursor?.client);
  const moves = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1],
    Home: [-tasks.length, 0], End: [tasks.length, 0] };
  if (!Object.hasOwn(moves, key)) return null;
  const [right, down] = column < 0 || row < 0 ? [1, 1] : moves[key];
  const within = (at, all) => all[Math.max(0, Math.min(at, all.length - 1))];
  return { task: within(column + right, tasks).task, client: within(row + down, clients).process };
}
