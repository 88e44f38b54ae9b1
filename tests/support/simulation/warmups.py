"""An application whose warm-ups are tracked over generations, encoded and decoded."""

from __future__ import annotations

from caughtup.models.copies.history import Observation
from caughtup.models.copies.probing import ProbingHistory
from caughtup.models.copies.warmup_table import WarmupTable
from caughtup.models.copies.warmups import CopyAssessment
from caughtup.models.histories.offset_sums import EndOffsetSum
from caughtup.models.ids import CopyKey, TaskId
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.state.cluster import ClusterState
from tests.support.groups.records import GROUP, START_MS
from tests.support.groups.streams import Member, generation, process
from tests.support.states import TOLD, cluster_state, known_ends, list_ends, read

TASK = TaskId(0, 1)
#: The warm-up of ``tests.support.groups.streams.WARMING``, and its task's end offset sum.
WARMUP = CopyKey(str(process(2)), TASK)
END = EndOffsetSum(50_000, 50_000)


class Service:
    """A table of warm-ups and a history of probes, and the state that feeds them."""

    def __init__(self, parameters: ApplicationParameters = TOLD) -> None:
        self.state: ClusterState = cluster_state(parameters)
        known_ends(self.state)
        self.table = WarmupTable(parameters)
        self.probing = ProbingHistory()
        self.limit = parameters.value("acceptable.recovery.lag")
        self.number = 0

    def rebalance(self, *members: Member, at_ms: int = START_MS) -> None:
        """Read a generation of these members, decide it, and apply it to the table."""
        self.number += 1
        if at_ms > START_MS + 60_000:  # the ends that are known from the start don't reach there
            list_ends(self.state, at_ms=at_ms - 2_000)
            list_ends(self.state, at_ms=at_ms + 1_000)
        read(self.state, generation(self.number, *members, at_ms=at_ms), seen_ms=at_ms)
        list(self.state.decide(at_ms + 20_000))
        self.refresh()

    def refresh(self) -> None:
        """Apply the decided generation as published, also if it was published before."""
        decided = self.state.applications[GROUP].decided
        assert decided is not None
        rows = self.state.task_rows(GROUP)
        list(self.table.apply_generation(decided.generation, rows, decided.inputs.ends))
        self.probing.apply(decided.generation, rows, self.limit, self.table.warmup_roles)

    def see(self, offset_sum: int, second: float, copy: CopyKey = WARMUP) -> bool:
        """Report a copy at an offset sum, ``second`` seconds after the start."""
        at_ms = START_MS + round(second * 1000)
        return self.table.observe(copy, Observation(at_ms, offset_sum, None, END))

    def assess(self, second: float = 0) -> dict[CopyKey, CopyAssessment]:
        """Assess every copy, ``second`` seconds after the start."""
        found = self.table.assess(START_MS + round(second * 1000))
        return {assessed.copy: assessed for assessed in found}
