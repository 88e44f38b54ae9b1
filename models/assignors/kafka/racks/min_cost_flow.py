"""A minimum-cost flow, found through the same cycles as in Kafka."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from operator import sub
from typing import NamedTuple

#: The initial distance of all nodes but the start in Kafka 3.6 (Integer.MAX_VALUE).
_FAR = (1 << 31) - 1


class _Open(NamedTuple):
    """An edge with residual capacity, seen from its start node."""

    end: int
    cost: int
    edge: int


class FlowNetwork:
    """Nodes from 0 on, and edges with a capacity, a cost per unit of flow, and a flow.

    Many flows have the same cost, and which of them results depends on the order in which cycles
    are found. So this is Kafka's search step for step: nodes are tried in ascending order, and so
    are the edges of each. Every node must have an edge, since the number of nodes counts, too.

    Source: Kafka's internal Graph, and KIP-925.
    """

    def __init__(self, nodes: int) -> None:
        # Edge 2n + 1 is the reverse of edge 2n.
        self._ends: list[int] = []
        self._costs: list[int] = []
        self._residual: list[int] = []
        self._open: list[list[_Open]] = [[] for _ in range(nodes)]

    def add_edge(self, start: int, end: int, capacity: int, cost: int = 0, flow: int = 0) -> int:
        """Add an edge between two nodes that have none yet, and return its number."""
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
        """Add as much flow from source to sink as the capacities allow, and return how much.

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
        """Return a cycle of negative cost, found by Bellman and Ford; None if there is none.

        Kafka starts at one additional node, with a free edge to every node: hence the initial
        zeroes and the additional pass. Which cycle is found depends on all passes, but not all of
        them have to be made: a node that came no nearer since its edges were tried is skipped, and
        so are passes that would only repeat earlier ones.
        """
        nodes = len(self._open)
        distances = [0] * nodes
        nearer = [True] * nodes
        reached_by: dict[int, int] = {}
        before: list[int] = []
        passes_since, next_check = 0, 1
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
            elif passes_since == next_check:
                before, passes_since, next_check = distances.copy(), 0, 2 * next_check
        return None

    def _repeats(self, before: list[int], now: list[int]) -> bool:
        """Return whether the passes between these distances will repeat for ever.

        They will if all distances that changed did so by the same amount, and nothing else can be
        reached from there: whatever was nearer before is nearer by as much now.
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
        """Follow the edges back from a node until they close a cycle, and return that cycle."""
        seen: set[int] = set()
        while node not in seen:
            seen.add(node)
            node = self._start(reached_by[node])
        return self._walk_back(node, node, reached_by)

    def _walk_back(self, node: int, until: int, reached_by: dict[int, int]) -> list[int]:
        """Return the edges that lead to a node, the last one first."""
        edges = [reached_by[node]]
        while (node := self._start(edges[-1])) != until:
            edges.append(reached_by[node])
        return edges

    def _start(self, edge: int) -> int:
        return self._ends[edge ^ 1]

    def _send(self, edges: Iterable[int]) -> int:
        """Send as much flow as fits through all of the edges, and return how much."""
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


class EarlierFlowNetwork(FlowNetwork):
    """The flow network of Kafka 3.6, which starts the search for each cycle at the next node.

    All other nodes begin at a great distance rather than as unreached. Since 3.7 the search starts
    at a node of its own. Source: Graph of 3.6.
    """

    def minimise_cost(self) -> None:
        """Redirect the flow until no other flow of the same size costs less.

        A cycle is found, if there is one, from any start node.
        """
        source = 0
        while cycle := self._cycle_from(source):
            self._send(cycle)
            source = (source + 1) % len(self._open)

    def _cycle_from(self, source: int) -> list[int] | None:
        nodes = len(self._open)
        distances = [_FAR] * nodes
        distances[source] = 0
        reached_by: dict[int, int] = {}
        for remaining in reversed(range(nodes)):
            changed = False
            for start, opened in enumerate(self._open):
                for end, cost, edge in opened:
                    if distances[start] + cost < distances[end]:
                        if not remaining:
                            return self._cycle_before(end, reached_by)
                        distances[end] = distances[start] + cost
                        reached_by[end] = edge
                        changed = True
            if not changed:
                return None
        return None
