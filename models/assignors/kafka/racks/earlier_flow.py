"""A flow at the least cost, by the cycles that Kafka 3.6 finds."""

from __future__ import annotations

from caughtup.models.assignors.kafka.racks.min_cost_flow import FlowNetwork

#: How far Kafka 3.6 takes everything to be from where it starts (Integer.MAX_VALUE).
_FAR = (1 << 31) - 1


class EarlierFlowNetwork(FlowNetwork):
    """Looks for each cycle from the next node, to which all others are far and not unreached.

    Since 3.7 it is looked for from a node of its own. Source: Graph of 3.6.
    """

    def minimise_cost(self) -> None:
        """Redirect the flow until no other flow of the same size costs less.

        From wherever it is looked for, a cycle is found if there is one.
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
