"""A flow at the least cost, found by way of the same cycles as Kafka finds."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from operator import sub
from typing import NamedTuple


class _Open(NamedTuple):
    """An edge that can take more flow, seen from the node that it leaves."""

    end: int
    cost: int
    edge: int


class FlowNetwork:
    """Nodes from 0 on, and edges with a capacity, a cost per unit of flow, and a flow.

    Flows of the same cost are many, and which of them comes out depends on the order in which
    cycles are found, so this is Kafka's search step for step: nodes are tried in ascending
    order, and so are the edges of each. Every node must have an edge: their number counts, too.

    Source: Kafka's internal Graph, and KIP-925.
    """

    def __init__(self, nodes: int) -> None:
        # Edge 2n + 1 takes back what flows through edge 2n.
        self._ends: list[int] = []
        self._costs: list[int] = []
        self._residual: list[int] = []
        self._open: list[list[_Open]] = [[] for _ in range(nodes)]

    def add_edge(self, start: int, end: int, capacity: int, cost: int = 0, flow: int = 0) -> int:
        """Add an edge between two nodes that have none yet, and give its number."""
        edge = len(self._ends)
        self._ends += (end, start)
        self._costs += (cost, -cost)
        self._residual += (capacity - flow, flow)
        for one in (edge, edge + 1):
            if self._residual[one]:
                self._set_open(one)
        return edge

    def flow(self, edge: int) -> int:
        """Return the flow through an edge, by its number."""
        return self._residual[edge ^ 1]

    def fill(self, source: int, sink: int) -> int:
        """Add as much flow from source to sink as the capacities allow, and tell how much.

        Shortest paths come first. Source: Graph.calculateMaxFlow.
        """
        added = 0
        while path := self._shortest_path(source, sink):
            added += self._send(path)
        return added

    def minimise_cost(self) -> None:
        """Redirect the flow until no other flow of the same size costs less.

        Source: Graph.solveMinCostFlow.
        """
        while cycle := self._negative_cycle():
            self._send(cycle)

    def _shortest_path(self, source: int, sink: int) -> list[int] | None:
        reached_by: dict[int, int] = {}
        queue = deque([source])
        while queue:
            for end, _, edge in self._open[queue.popleft()]:
                if end == source or end in reached_by:
                    continue
                reached_by[end] = edge
                if end == sink:
                    return self._walk_back(sink, source, reached_by)
                queue.append(end)
        return None

    def _negative_cycle(self) -> list[int] | None:
        """Find a cycle whose costs add up to less than nothing, by Bellman and Ford.

        Kafka starts at one node more, with a free edge to every node: hence the zeroes and the
        one pass more. Which cycle is found depends on all of the passes, but not all have to be
        made. A node that came no nearer since its edges were tried is passed over, and so are
        the passes that would only repeat what others have done.
        """
        nodes = len(self._open)
        distances = [0] * nodes
        nearer = [True] * nodes
        reached_by: dict[int, int] = {}
        before: list[int] = []
        passes_since, next_look = 0, 1
        remaining = nodes + 1
        while remaining:
            remaining -= 1
            for start in range(nodes):
                if not nearer[start]:
                    continue
                nearer[start] = False
                distance = distances[start]
                for end, cost, edge in self._open[start]:
                    if distance + cost < distances[end]:
                        distances[end] = distance + cost
                        nearer[end] = True
                        reached_by[end] = edge
                        if not remaining:
                            return self._cycle_before(end, reached_by)
            if True not in nearer:
                return None
            passes_since += 1
            if before and self._repeats(before, distances):
                remaining = (remaining - 1) % passes_since + 1
                before = []
            elif passes_since == next_look:
                before, passes_since, next_look = distances.copy(), 0, 2 * next_look
        return None

    def _repeats(self, before: list[int], now: list[int]) -> bool:
        """Return whether the passes between these distances will be made all over again.

        They will when all the distances that have changed have changed by the same, and nothing
        else can be reached from there: what was nearer then is nearer by as much now.
        """
        changes = set(map(sub, before, now)) - {0}
        if len(changes) != 1:
            return False
        return all(
            before[end] != now[end]
            for node, opened in enumerate(self._open)
            if before[node] != now[node]
            for end, _, _ in opened
        )

    def _cycle_before(self, node: int, reached_by: dict[int, int]) -> list[int]:
        """Follow the edges back from a node until they close a cycle, and give that cycle."""
        seen: set[int] = set()
        while node not in seen:
            seen.add(node)
            node = self._start(reached_by[node])
        return self._walk_back(node, node, reached_by)

    def _walk_back(self, node: int, until: int, reached_by: dict[int, int]) -> list[int]:
        """List the edges that lead to a node, the last one first."""
        edges = [reached_by[node]]
        while (node := self._start(edges[-1])) != until:
            edges.append(reached_by[node])
        return edges

    def _start(self, edge: int) -> int:
        return self._ends[edge ^ 1]

    def _send(self, edges: Iterable[int]) -> int:
        """Send as much as fits through all of the edges, and tell how much that was."""
        edges = list(edges)
        residual = self._residual
        amount = min(residual[edge] for edge in edges)
        for edge in edges:
            residual[edge] -= amount
            if not residual[edge]:
                self._set_shut(edge)
            if not residual[edge ^ 1]:
                self._set_open(edge ^ 1)
            residual[edge ^ 1] += amount
        return amount

    def _set_open(self, edge: int) -> None:
        insort(self._open[self._start(edge)], self._seen_from_start(edge))

    def _set_shut(self, edge: int) -> None:
        opened = self._open[self._start(edge)]
        del opened[bisect_left(opened, self._seen_from_start(edge))]

    def _seen_from_start(self, edge: int) -> _Open:
        return _Open(self._ends[edge], self._costs[edge], edge)
