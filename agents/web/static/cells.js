// The renderers of cells, by the names in the service's declarations (agents/columns.py, page_columns.py).

import { verdict } from "./shell/declared.js";
import { h } from "./shell/dom.js";
import { known, short, written } from "./shell/format.js";
import { COPY_CELLS } from "./application/copies.js";
import { MOVEMENT_CELLS } from "./application/movements.js";
import { MEMBER_CELLS } from "./group/members.js";
import { PARTITION_CELLS } from "./group/partitions.js";
import { REBALANCE_CELLS } from "./group/rebalances.js";
import { CHANGE_CELLS } from "./overview/changes.js";
import { groupName } from "./overview/groups.js";
import { sparkline } from "./overview/sparkline.js";
import { CONNECT_CELLS } from "./views/connect.js";
import { TRANSACTION_CELLS } from "./views/transactions.js";
import { REASSIGNMENT_CELLS } from "./views/reassignments.js";

const figures = (row, { of }) => of.map((name) => row[name]);

/** A figure, and a bar below it: its share of the greatest one. */
function bar(row, column, { most }) {
  const [first] = figures(row, column);
  return { class: "lag", says: [h("b", null, written(column.unit, figures(row, column))),
    h("span", { class: "progress", "--share": most ? ((first ?? 0) / most).toFixed(3) : 0 })] };
}

export const CELLS = {
  bar,
  group: groupName,
  short: (row, column) => ({ says: short(figures(row, column)[0]) }),
  sparkline: (row, column) => ({ says: sparkline(figures(row, column)[0], column.page.heading) }),
  stream: ({ stream }) => ({ class: "name", says: stream }),
  verdict: (row, column) => ({ class: "together", title: row.why || null, says: verdict(column.verdict, figures(row, column)[0]) }),
  time: (row, column, { nowMs }) => ({ class: "together", says: written(column.unit, figures(row, column), nowMs) }),
  ...CHANGE_CELLS,
  ...CONNECT_CELLS,
  ...COPY_CELLS,
  ...MEMBER_CELLS,
  ...MOVEMENT_CELLS,
  ...PARTITION_CELLS,
  ...REASSIGNMENT_CELLS,
  ...REBALANCE_CELLS,
  ...TRANSACTION_CELLS,
};
