"""A verdict's evidence in words, and the advice for its cause, with figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from caughtup.models.durations import counted, duration, size
from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.controllers import reverted
from caughtup.models.reassignments.tracker import TrackedReassignment

#: The advice how to cancel a reassignment.
CANCEL = "cancel it with kafka-reassign-partitions.sh --cancel"
_RAISE = (
    "kafka-configs.sh --entity-type brokers --entity-name {throttled_broker} --alter "
    "--add-config {throttled_as}.replication.throttled.rate=BYTES"
)
#: A throttle far below one batch makes a copy seem to stand still.
_TOO_LOW = (
    "check first whether {throttle_bytes_per_second} bytes/s is the throttle that you meant: "
    f"{_RAISE}"
)
_ADVICE = {
    "leader-missing": (
        "start a broker that has an in-sync replica: {sources}; "
        "only if those are lost for good, use kafka-leader-election.sh --election-type unclean"
    ),
    "destination-broker-down": (
        f"start broker {{replica}}, or {CANCEL} and choose a broker that runs"
    ),
    "destination-broker-fenced": (
        "look in the log of broker {replica} for why it does not reach the controller "
        f"(start-up, network), or {CANCEL}"
    ),
    "retained-replica-down": (
        f"start broker {{replica}}, which keeps its replica, or {CANCEL} and leave it out"
    ),
    "removal-blocked": (
        "broker {replica} keeps its replica and must be in sync before others are removed: "
        f"repair it, or {CANCEL}"
    ),
    "in-both-lists": (
        f"broker {{replica}} is both added and removed since the target was changed: {CANCEL}, "
        "then start the reassignment again"
    ),
    "throttle-starved": (
        "raise the throttle well above the {in_sync_bytes_per_second} bytes/s that in-sync "
        f"replicas take: {_RAISE}"
    ),
    "throttle-slow": (
        "raise the throttle, now {throttle_bytes_per_second} bytes/s, if the network allows: "
        f"{_RAISE}"
    ),
    "replica-not-created": (
        "look in the log of broker {replica} for why it doesn't create the replica, restart it, "
        f"or {CANCEL}"
    ),
    "disk-full": (
        f"free or add disk space on broker {{replica}} ({{usable_bytes}} left), or {CANCEL}"
    ),
    "directory-offline": (
        "broker {replica} runs but cannot use a log directory: see kafka-log-dirs.sh --describe "
        "--broker-list {replica}, replace the disk and restart it"
    ),
    "restart-loop": (
        "the copy on broker {replica} starts from the beginning again and again: look in its log for truncation, "
        "errors and restarts"
    ),
    "cannot-join-isr": (
        "broker {replica} has copied everything but stays out of the ISR: look for AlterPartition in the "
        "log of broker {leader}, which leads, and restart broker {replica} if it names no reason"
    ),
    "controller-slow": (
        "all needed replicas are in sync; the controller has yet to complete it: "
        "see kafka-metadata-quorum.sh describe --status and the active controller's log"
    ),
    "leader-outruns-copy": (
        "more is written than broker {replica} copies: raise num.replica.fetchers on broker "
        "{replica}, or move the partition when less is written"
    ),
    "write-rate": (
        "new records take up most of what broker {replica} copies: move the partition when less "
        "is written, or raise num.replica.fetchers on broker {replica}"
    ),
    "copy-slow": (
        "broker {replica} copies at its own pace, with no throttle known: look at its disk, "
        "network and num.replica.fetchers, and at how much else it copies"
    ),
    "copy-stopped": (
        "look in the logs of brokers {replica} and {leader} for ReplicaFetcherThread; restart "
        f"broker {{replica}}, or {CANCEL}"
    ),
    "replica-unanswered": (
        "broker {replica} does not report its log end offset: check whether caughtup can connect to it"
    ),
    "log-end-unknown": (
        "caughtup does not know how far broker {replica} has copied: check whether caughtup may DESCRIBE the topic"
    ),
    "leader-log-end-unknown": (
        "the leader, broker {leader}, does not report its log end offset: check whether caughtup can connect to it"
    ),
    "isr-unknown": "check whether caughtup may DESCRIBE topic {topic}",
    "not-looked-at": "/ready and caughtup's log say why caughtup cannot list reassignments",
    "no-replicas": "check whether caughtup may DESCRIBE topic {topic}; Kafka listed no replicas",
    "controller-failover": "wait: the controllers have just elected another leader",
}


#: Evidence that is shown elsewhere, or is for programs only.
_SHOWN_ELSEWHERE = frozenset(("looks", "idle_seconds", "eta_seconds"))
_YES_OR_NO = {"answers": ("answers", "doesn't answer")}
_BROKERS = frozenset(("leader", "quorum_leader", "throttled_broker"))
#: Words for the evidence of most verdicts; all other evidence is shown as name and figure.
_PHRASES: Mapping[str, Callable[[float], str]] = {
    "replica": lambda broker: f"broker {broker}",
    "offsets_behind": lambda offsets: f"{counted(int(offsets), 'offset')} behind",
    "bytes_behind": lambda number: f"{size(number)} behind",
    "stood_seconds": lambda seconds: f"no progress for {duration(seconds)}",
    "allowed_seconds": lambda seconds: f"{duration(seconds)} allowed",
    "usable_bytes": lambda number: f"{size(number)} free on its disk",
}

#: Every cause that a verdict can have.
CAUSES = tuple(sorted(_ADVICE))


def advice(
    cause: str | None, partition: TopicPartition, leader: int | None, evidence: Mapping[str, object]
) -> str | None:
    """Return the advice for a cause, None if there is none."""
    template = _ADVICE.get(cause or "")
    if template is None:
        return None
    if cause == "copy-stopped" and "throttle_bytes_per_second" in evidence:
        template = f"{_TOO_LOW}; otherwise {template}"
    known = {"topic": partition.topic, "leader": "?" if leader is None else leader}
    figures = {name: _figure(name, value) for name, value in evidence.items()}
    return template.format_map(_QuestionMarks({**known, **figures}))


def advice_on(
    cause: str | None, tracked: TrackedReassignment, evidence: Mapping[str, object]
) -> str | None:
    """Return the advice on a reassignment, with what a cancel leaves if not the original."""
    latest = tracked.latest
    text = advice(cause, latest.topic_partition, latest.leader, evidence)
    left = reverted(latest)
    if text is None or CANCEL not in text or set(left) == set(tracked.original):
        return text
    return (
        f"{text}; since the target was changed, that leaves it on brokers {_brokers(left)}, "
        f"not on {_brokers(tracked.original)} as before"
    )


def _figure(name: str, value: object) -> object:
    """Return a figure as text for people: a size with its unit, a rate as throttles are set."""
    match value:
        case int() | float() if name == "usable_bytes":
            return size(value)
        case int() | float() if name.endswith("_per_second"):
            return f"{value:,.0f}"
    return value


def _brokers(numbers: Iterable[int]) -> str:
    return ", ".join(str(number) for number in numbers)


class _QuestionMarks(dict[str, object]):
    """Values of a template by name; an unknown one is a question mark."""

    def __missing__(self, key: str) -> str:
        return "?"


def in_words(evidence: Mapping[str, object]) -> str:
    """Return evidence as text for people: ``1,200 offsets behind, no progress for 64 s``."""
    shown = {name: value for name, value in evidence.items() if name not in _SHOWN_ELSEWHERE}
    if shown.get("waits_for") == [shown.get("replica")]:
        del shown["waits_for"]
    return ", ".join(_words(name, value) for name, value in shown.items())


def _words(name: str, value: object) -> str:
    words = name.replace("_", " ")
    match value:
        case int() | float() if name in _PHRASES:
            return _PHRASES[name](value)
        case bool():
            yes, no = _YES_OR_NO.get(name, (words, f"not {words}"))
            return yes if value else no
        case int() | float() if name.endswith("_seconds"):
            return f"{words.removesuffix(' seconds')} {duration(value)}"
        case int() | float() if name.endswith("bytes_per_second"):
            return f"{words.removesuffix('bytes per second')}{size(value)}/s"
        case int() | float() if name.endswith("_per_second"):
            return f"{words.removesuffix(' per second')} {value:,.0f}/s"
        case int() | float() if name.startswith("bytes_") or name.endswith("_bytes"):
            return f"{words.removesuffix(' bytes').removeprefix('bytes ')} {size(value)}"
        case int() if name in _BROKERS:
            return f"{words} {value}"
        case int():
            return f"{words} {value:,}"
        case float():
            return f"{words} {value:,.1f}"
        case list():
            return f"{words} {', '.join(map(str, value))}"
    return f"{words} {value}"
