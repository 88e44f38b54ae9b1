"""The demo's story: changes of the cluster, and caughtup's expected output."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from confluent_kafka.admin import AdminClient

from caughtup.demo.cluster.load import produce
from caughtup.demo.cluster.throttle import clear_throttle, set_throttle
from caughtup.demo.cluster.topics import create_topics
from caughtup.demo.story.facts import Facts
from caughtup.demo.story.stage import APPLICATION, PARTITIONS, DemoStage, View
from caughtup.demo.story.truth import CopyPlace, active_tasks, application_lags
from caughtup.models.ids import TopicPartition

#: Reassigns a partition to these brokers.
Reassign = Callable[[TopicPartition, list[int]], None]

ORDERS = 20_000
CUSTOMERS = 500
PARCELS = TopicPartition("parcels", 0)
_PARCELS = 6_000
_PARCEL_BYTES = 4_000
#: About 12 s for the parcels' 24 MB.
THROTTLE_BYTES = 2_000_000
_SETTLE_SECONDS = 60.0
_PROBING_SECONDS = 90.0
_REASSIGNMENT_SECONDS = 90.0


class ScriptedStory:
    """The acts; each ends when caughtup shows its effect."""

    def __init__(
        self, stage: DemoStage, facts: Facts, reassign: Reassign, say: Callable[[str], None]
    ) -> None:
        self._stage = stage
        self._facts = facts
        self._reassign = reassign
        self._say = say

    def two_instances(self) -> None:
        """Two instances share the tasks, and work through the orders."""
        application = self._stage.application
        for name in ("orders-a", "orders-b"):
            self._say(f"starting the instance {name}")
            application.start_instance(name)
        self._say(f"producing {ORDERS:,} orders of {CUSTOMERS} customers")
        produce(self._stage.cluster, application.source, ORDERS, keys=CUSTOMERS)
        application.wait_caught_up()
        view = self._stage.wait(
            "two settled clients", lambda: self._settled(clients=2), _SETTLE_SECONDS
        )
        self._facts.check("clients seen", 2, len(view["clients"]))
        lag = self._stage.wait("the group's lag", self._no_lag, _SETTLE_SECONDS)
        self._facts.check("lag of the group once it stands still", 0, lag["lag"])

    def a_third_joins(self) -> View:
        """A third instance joins: nothing can move yet, so warm-ups appear."""
        # Standbys catch up first, so that the positions that are compared do not change.
        self._stage.application.wait_caught_up()
        before = application_lags(self._stage.application)
        self._say("a third instance joins: orders-c")
        self._stage.application.start_instance("orders-c")
        view = self._stage.wait(
            "a settled generation of three clients",
            lambda: self._settled(clients=3),
            _SETTLE_SECONDS,
        )
        warmups = self._copies(view, "warmup")
        self._facts.check(
            "warm-ups on the new client", "1 or 2", len(warmups), 0 < len(warmups) <= 2
        )
        self._facts.check("probing rebalance scheduled", True, view["probing"]["scheduled"])
        self._compare_lags("lag table after the join", view, before)
        return view

    def a_partition_is_reassigned(self) -> None:
        """A partition is reassigned under a throttle, and finishes."""
        cluster = self._stage.cluster
        create_topics(cluster, {PARCELS.topic: 1}, replicas=1)
        self._say(f"producing {_PARCELS * _PARCEL_BYTES // 1_000_000} MB to {PARCELS}")
        produce(cluster, PARCELS.topic, _PARCELS, value_bytes=_PARCEL_BYTES)
        set_throttle(cluster, PARCELS.topic, THROTTLE_BYTES)
        target = 3 - self._leader_of_parcels()
        self._say(f"moving {PARCELS} to broker {target} at {THROTTLE_BYTES // 1_000_000} MB/s")
        self._reassign(PARCELS, [target])
        remaining: list[int] = []

        def ended() -> View | None:
            page = self._stage.page()
            remaining.extend(
                row["offsets_remaining"]
                for row in page["reassignments"]
                if row["topic"] == PARCELS.topic and "offsets_remaining" in row
            )
            return next(
                (r for r in page["recent_reassignments"] if r["topic"] == PARCELS.topic), None
            )

        outcome = self._stage.wait("the end of the reassignment", ended, _REASSIGNMENT_SECONDS)
        clear_throttle(cluster, PARCELS.topic)
        steps = len(set(remaining))
        falling = remaining == sorted(remaining, reverse=True)
        self._facts.check(
            "the move's remaining offsets, falling", "3 steps or more", steps, falling and steps > 2
        )
        self._facts.check("how the move ended", "completed", outcome["outcome"])

    def warm_ups_are_promoted(self, joined: View) -> None:
        """The probing rebalance finds the warm-ups caught up: they become active."""
        warm = {(c["process"], task) for task, c in self._copies(joined, "warmup")}
        due = joined["probing"]["due_ms"]
        self._say(f"waiting for the probing rebalance, in {due / 1000 - time.time():.0f} s")
        self._stage.application.wait_caught_up()
        before = application_lags(self._stage.application)

        def promoted() -> View | None:
            view = self._settled(clients=3)
            if view is None or view["generation"] <= joined["generation"]:
                return None
            active = {(c["process"], task) for task, c in self._copies(view, "active", "restoring")}
            return view if warm & active else None

        view = self._stage.wait("warm-ups to be promoted", promoted, _PROBING_SECONDS)
        now = {(c["process"], task) for task, c in self._copies(view, "active", "restoring")}
        self._facts.check(
            "warm-ups promoted", f"some of {len(warm)}", len(warm & now), bool(warm & now)
        )
        late = view["as_of_ms"] - due
        self._facts.check(
            "the probing rebalance came after its due time",
            "0 to 30 s",
            f"{late / 1000:.1f} s",
            0 <= late <= 30_000,
        )
        self._compare_lags("lag table after the probing rebalance", view, before)

    def one_is_killed(self) -> None:
        """An instance dies: its tasks move to where their standbys are."""
        self._say("killing orders-b")
        lost = str(self._stage.application.process_id("orders-b"))
        orphans = active_tasks(self._stage.application)[lost]
        self._stage.application.kill_instance("orders-b")
        view = self._stage.wait(
            "a settled generation without it",
            lambda: self._settled(clients=2, without=lost),
            _SETTLE_SECONDS,
        )
        seen: dict[str, set[str]] = {client["process"]: set() for client in view["clients"]}
        for task, copy in self._copies(view, "active", "restoring"):
            seen[copy["process"]].add(task)
        taken = orphans & set().union(*seen.values())
        self._facts.check("tasks of the killed instance taken over", len(orphans), len(taken))

        def agree() -> bool:
            return active_tasks(self._stage.application) == seen

        self._stage.wait(
            "the application to run the tasks that it was assigned", agree, _SETTLE_SECONDS
        )
        self._facts.check("active tasks by client", "as the application says", "the same", agree())

    def _settled(self, clients: int, without: str = "") -> View | None:
        """Return the application's view once every task has an active and nothing is held back."""
        view = self._stage.application_view()
        if view is None or len(view["clients"]) != clients or "exact" not in view:
            return None
        if without in {client["process"] for client in view["clients"]}:
            return None
        if view["history"][0]["generation"] != view["generation"]:
            return None
        active = {task for task, _ in self._copies(view, "active", "restoring")}
        return view if len(active) == 2 * PARTITIONS else None

    def _copies(self, view: View, *roles: str) -> list[tuple[str, View]]:
        return [
            (row["task"], copy)
            for row in view["tasks"]
            for copy in row["copies"]
            if copy["role"] in roles
        ]

    def _compare_lags(
        self, what: str, view: View, before: Mapping[tuple[str, str], CopyPlace]
    ) -> None:
        """Compare the lag table with the application's lags, taken while nothing was processed.

        A copy that did not exist then lags by the whole changelog; if it lags by less, it has begun
        to restore, and is not compared.
        """
        ends = {task: place.end for (_, task), place in before.items()}
        compared = equal = 0
        for task, copy in self._copies(view, "standby", "warmup", "none"):
            place = before.get((copy["process"], task))
            if place is None and copy["lag"] < ends[task]:
                continue
            compared += 1
            equal += copy["lag"] == (ends[task] if place is None else place.lag)
        self._facts.check(
            f"{what}: copies that lag as the application says",
            compared,
            equal,
            compared == equal > 0,
        )

    def _no_lag(self) -> View | None:
        group = next(g for g in self._stage.page()["groups"] if g["group"] == APPLICATION)
        return group if group.get("lag") == 0 else None

    def _leader_of_parcels(self) -> int:
        admin = AdminClient(self._stage.cluster.client_config())
        topics = admin.list_topics(PARCELS.topic).topics
        leader: int = topics[PARCELS.topic].partitions[0].leader
        return leader
