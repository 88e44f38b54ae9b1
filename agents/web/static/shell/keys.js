// Arrow keys inside a matrix, which is a single tab stop.

/** Call `onFocus(cell)` whenever a cell of a matrix takes the focus. */
export function installKeys(onFocus) {
  document.addEventListener("focusin", (event) => {
    const cell = event.target.closest("[data-cell]");
    if (cell) onFocus(cell.dataset.cell);
  });
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const search = event.key === "/" && !event.target.closest?.("input, dialog") && document.querySelector("[type=search]");
    const cell = event.target.closest?.("[data-cell]");
    const target = search || (cell && neighbour(cell, event.key));
    if (!target) return;
    event.preventDefault();
    if (target !== search) target.tabIndex = 0;
    target.focus();
  });
}

function neighbour(cell, key) {
  const cells = [...cell.closest("[data-matrix]").querySelectorAll("[data-cell]")];
  const row = cells.filter((each) => each.dataset.row === cell.dataset.row); // continues in the next band
  const at = row.indexOf(cell);
  const column = [...cell.closest("tbody").rows].map((each) => each.cells[cell.cellIndex]);
  const line = column.indexOf(cell);
  switch (key) {
    case "ArrowRight": return row[at + 1];
    case "ArrowLeft": return row[at - 1];
    case "ArrowDown": return column[line + 1];
    case "ArrowUp": return column[line - 1];
    case "Home": return row[0];
    case "End": return row.at(-1);
    default: return undefined;
  }
}
