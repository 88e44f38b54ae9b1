"""What is known of an application's configs, and how another generation changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.configs import Release, releases_of
from caughtup.models.assignment.decision import Decision
from caughtup.models.decisions.exact.comparison import listed
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.contradiction import (
    ALL_NAMES,
    ASSIGNOR,
    NAMES,
    WOULD_TELL,
    changes_in_words,
    doubtful_configs,
    is_open,
    values_in_words,
)
from caughtup.models.learning.elimination import MOST_DECISIONS, Sifted, sift
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.probing_interval import probing_interval
from caughtup.models.learning.ranges import Hypotheses, IntSpan, agreeing, joined
from caughtup.models.learning.sifter import Judgement
from caughtup.models.learning.told import (
    OTHER_COSTS,
    UNTOLD,
    ToldConfigs,
    any_costs,
    consistent_hypotheses,
    possible_hypotheses,
)
from caughtup.models.learning.witness import Witness, find_witness, is_refuted
from caughtup.models.parameters import STRATEGY, TAGS
from caughtup.models.records.recommendations import Result


def leaders_version(generation: StreamsGeneration) -> int:
    """Return the newest version of subscriptions that the leader supports.

    If the leader's subscription is unreadable, the oldest of the other members' versions.
    """
    members = tuple(generation.members())
    own = [one.latest_version for one in members if one.member_id == generation.leader]
    return min(own or [one.latest_version for one in members])


def leaders_releases(generation: StreamsGeneration) -> IntSpan:
    """Return the families of releases that the leader may have; at least one must be modelled."""
    found = releases_of(leaders_version(generation))
    return IntSpan(found[0], found[-1])


def likely_releases(generation: StreamsGeneration) -> IntSpan:
    """Return the same families without 3.2, which is tried only if all others are contradicted.

    3.2 writes the same version as later releases, and decides as they do unless several tasks wait.
    Testing it each time would double the decisions, for a release that had only three patches.
    """
    low, high = leaders_releases(generation)
    return IntSpan(max(low, Release.V3_3), high) if low == Release.V3_2 else IntSpan(low, high)


def under_releases(hypotheses: Hypotheses, releases: IntSpan, likely: IntSpan) -> Hypotheses:
    """Return the hypotheses that hold under these releases.

    If there are none, the application was upgraded or downgraded: then its configs stay as they
    were, under any of the ``likely`` releases that have them.
    """
    left = tuple(
        replace(one, releases=met)
        for one in hypotheses
        if (met := one.releases.meet(releases)) is not None
    )
    if left or not hypotheses:
        return left
    moved = (
        replace(one, releases=met)
        for one in hypotheses
        if (met := one.algorithm.releases.meet(likely)) is not None
    )
    return joined(moved)


#: The most decisions about a suspicion, for each generation that the hypotheses explain.
_MOST_OF_SUSPECTED = MOST_DECISIONS // 4
#: The most client tags for which any subset is tried as rack.aware.assignment.tags.
_MOST_KEYS = 4
#: After this many generations without end offsets, the leader counts as having the fallback
#: assignor configured, if that one explains all other generations, too.
_MOST_WITHOUT_ENDS = 4


@dataclass(frozen=True, slots=True)
class Learned:
    """The hypotheses about an application's configs, each of which may be true.

    ``hypotheses`` agree with the settings (``told``), and with every generation since ``since``
    except those that cannot be judged; None before the first one. ``explained`` counts the
    generations of which a decision was matched. If a generation contradicts all hypotheses,
    ``suspected`` are those that explain it and the later ones, from ``suspected_since`` on, and
    ``hypotheses`` stay: the generation may be an exception. A second contradiction settles it.
    ``probing`` bounds ``probing.rebalance.interval.ms``, in ms; None if no generation showed it.
    ``without_ends`` counts the generations that only a leader without end offsets can have decided.
    """

    told: ToldConfigs = UNTOLD
    hypotheses: Hypotheses | None = None
    since: int | None = None
    explained: int = 0
    suspected: Hypotheses = ()
    suspected_since: int | None = None
    probing: IntSpan | None = None
    without_ends: int = 0

    @property
    def possible(self) -> Hypotheses:
        """All hypotheses, suspected ones included, that agree with the settings."""
        own = self.hypotheses or ()
        if not self.suspected:
            return own
        return (*own, *agreeing(self.suspected, consistent_hypotheses(self.told, self.suspected)))


@dataclass(frozen=True, slots=True)
class LearningResult:
    """The result for one generation, and why.

    ``match``: all remaining hypotheses decide as the leader did, with all end offsets within their
    bounds. ``consistent``: one does with some end offsets within the bounds, the ``witness``.
    ``mismatch``: none did, although all other inputs are known. ``undetermined``: none of these. ``decision`` is that of one hypothesis, a
    remaining one if there is any; None if nothing could be decided. ``open`` are the configs that
    are yet to be found, and ``narrowed`` those of which this generation excluded values: a match
    without any was predicted. ``doubted`` are those that seem to differ from the settings or from
    what was learned. ``decisions`` counts the decisions made. ``unexplained``: all inputs are
    known, and no hypothesis decides as the leader did.
    """

    result: Result
    why: str
    decision: Decision | None = None
    open: tuple[str, ...] = ()
    narrowed: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    decisions: int = 0
    unexplained: bool = False
    witness: Witness | None = None


def learn(
    learned: Learned, generation: StreamsGeneration, inputs: GenerationInputs, seen_ms: int
) -> tuple[Learned, LearningResult]:
    """Return what is known of an application's configs after one more generation, and its result.

    ``seen_ms`` is when the generation's record was read. A pure function, for any thread.
    """
    why = _unusable(generation)
    if not why and learned.told.tags is None and len(tag_keys(generation)) > _MOST_KEYS:
        why = f"there are more than {_MOST_KEYS} client tags: set {TAGS} in the settings"
    if why:
        return learned, LearningResult("undetermined", why)
    learned = replace(learned, probing=probing_interval(learned.probing, generation, seen_ms))
    try:
        evidence = Evidence(generation, inputs)
    except ScenarioError as error:
        return learned, LearningResult("undetermined", error.message)
    releases, likely = leaders_releases(generation), likely_releases(generation)
    if learned.hypotheses is None:
        every = possible_hypotheses(learned.told, tag_keys(generation), racked=generation.is_racked)
        every = under_releases(every, likely, likely)
        learned = replace(learned, hypotheses=every, since=generation.generation)
    learned = replace(
        learned,
        hypotheses=under_releases(learned.hypotheses or (), releases, likely),
        suspected=under_releases(learned.suspected, releases, likely),
    )
    spares = learned.without_ends < _MOST_WITHOUT_ENDS
    sifted = sift(learned.hypotheses or (), evidence, spares=spares)
    learned = replace(learned, without_ends=learned.without_ends + sifted.without_ends)
    if sifted.left:
        learned, verdict = _explained(learned, sifted, evidence)
        refutable = verdict.unexplained and not sifted.spared
        if refutable and is_refuted(evidence, sifted.left):
            told = learned.told.assignor is not None
            why = "no end offsets within their bounds lead to it: " + listed(sifted.differences)
            verdict = replace(verdict, result="mismatch" if told else "undetermined", why=why)
    else:
        learned, verdict = _contradicted(learned, sifted, evidence, inputs.inferred)
    return learned, replace(verdict, decisions=evidence.decisions)


def _unusable(generation: StreamsGeneration) -> str:
    """Return why nothing can be learned from a generation; empty if something can."""
    if not generation.clients:
        return "no member's subscription could be read"
    if generation.follows:
        return "its leader is a follower, and did not publish its inputs"
    for member in generation.members():
        if member.assignment is None or member.assignment.error_code:
            return f"the leader sent {member.client_id} an error instead of an assignment"
    if not releases_of(leaders_version(generation)):
        return f"caughtup does not know its leader's release (subscription version {leaders_version(generation)})"
    if len({member.latest_version for member in generation.members()}) > 1:
        return "members run different releases: a deployment is in progress"
    keys = [frozenset(m.client_tags) for m in generation.members()]
    if any(own != keys[0] for own in keys):
        return "members have different client tags: a deployment is in progress"
    return ""


def tag_keys(generation: StreamsGeneration) -> frozenset[str]:
    """Return the client tags that all members report."""
    keys = [frozenset(member.client_tags) for member in generation.members()]
    return frozenset.intersection(*keys) if keys else frozenset()


def _explained(
    learned: Learned, sifted: Sifted, evidence: Evidence
) -> tuple[Learned, LearningResult]:
    """Keep the remaining hypotheses, unless a suspicion explains the generation as well."""
    before = learned.hypotheses or ()
    suspected: Hypotheses = ()
    if learned.suspected:
        suspected = sift(learned.suspected, evidence, _MOST_OF_SUSPECTED).left
    matched = Judgement.MATCH in sifted.findings
    after = replace(
        learned,
        hypotheses=before if suspected else sifted.left,
        explained=learned.explained + matched,
        suspected=suspected,
        suspected_since=learned.suspected_since if suspected else None,
    )
    narrowed = tuple(
        n for n in NAMES if values_in_words(n, before) != values_in_words(n, sifted.left)
    )
    if matched and sifted.findings <= {Judgement.MATCH, Judgement.CONTRADICTED}:
        return after, LearningResult("match", "", sifted.decision, narrowed=narrowed)
    doubts = list(sifted.doubts)
    if not doubts:
        between = "the assignment to threads depends on lags that are not known exactly"
        doubts = [": ".join((between, *sifted.differences[:1]))]
    among = ALL_NAMES if sifted.releases_differ else NAMES
    names = tuple(name for name in among if is_open(name, sifted.left))
    doubts += [
        f"{name} is not known ({values_in_words(name, sifted.left)}; what would narrow it down: {WOULD_TELL[name]})"
        for name in names
    ]
    witness = None if evidence.doubts else find_witness(evidence, sifted.left)
    return after, LearningResult(
        "undetermined" if witness is None else "consistent",
        listed(doubts) if witness is None else f"{witness.text()}; {listed(doubts)}",
        sifted.decision if witness is None else witness.decision,
        open=names,
        narrowed=narrowed,
        unexplained=not (matched or witness or evidence.doubts),
        witness=witness,
    )


def _contradicted(
    learned: Learned, sifted: Sifted, evidence: Evidence, inferred: Sequence[str]
) -> tuple[Learned, LearningResult]:
    """Find the configs that explain a generation that contradicts all hypotheses."""
    before = learned.hypotheses or ()
    if inferred and not learned.explained:
        why = listed([f"inferred: {line}" for line in inferred])
        return learned, LearningResult("undetermined", why, sifted.decision)
    keys = tag_keys(evidence.generation)
    still = sift(learned.suspected, evidence).left if learned.suspected else ()
    racked = evidence.generation.is_racked
    every = under_releases(
        possible_hypotheses(UNTOLD, keys, racked=racked, costs=any_costs(learned.told)),
        leaders_releases(evidence.generation),
        leaders_releases(evidence.generation),
    )
    fresh = still or sift(every, evidence).left
    number = evidence.generation.generation
    since = learned.suspected_since if still else number
    if not fresh:
        after = replace(learned, suspected=(), suspected_since=None)
        why = "no configs of Kafka's assignors explain it: " + listed(sifted.differences)
        result: Result = "undetermined" if learned.told.assignor is None else "mismatch"
        return after, LearningResult(result, why, sifted.decision, unexplained=True)
    everything = possible_hypotheses(learned.told, keys, racked=racked, costs=OTHER_COSTS)
    within = agreeing(fresh, everything)
    after = replace(learned, suspected=fresh, suspected_since=since)
    if within:
        names = doubtful_configs(before, within)
        if still:
            after = replace(
                learned,
                hypotheses=within,
                since=since,
                suspected=(),
                suspected_since=None,
                without_ends=0,
            )
        why = f"from generation {since} on: {changes_in_words(names, before, within)}"
        return after, _doubting("undetermined", why, sifted, names)
    names = doubtful_configs(everything, fresh, told_names(learned.told))
    why = (
        f"the leader's decision contradicts the settings: {changes_in_words(names, before, fresh)}"
    )
    if sifted.differences:
        why += (
            f"; with the settings, Kafka's assignor decides otherwise: {listed(sifted.differences)}"
        )
    return after, _doubting("mismatch", why, sifted, names)


def _doubting(result: Result, why: str, sifted: Sifted, names: tuple[str, ...]) -> LearningResult:
    return LearningResult(result, why, sifted.decision, doubted=names, unexplained=True)


def told_names(told: ToldConfigs) -> tuple[str, ...]:
    """Return the names of the configs in the settings that hypotheses are about."""
    besides = {TAGS: told.tags is not None, ASSIGNOR: told.assignor is not None}
    besides[STRATEGY] = told.tells_racks
    return tuple(name for name in NAMES if name in told.configs or besides.get(name))


def with_settings(learned: Learned, told: ToldConfigs) -> Learned:
    """Return what is known under changed settings.

    What was learned stays as far as it agrees with the new settings. Nothing stays if a setting was
    removed or changed: values that it had excluded are possible again.
    """
    if told == learned.told:
        return learned
    before = learned.told
    adds = (
        told.configs.items() >= before.configs.items()
        and before.tags in (None, told.tags)
        and before.assignor in (None, told.assignor)
        and before.strategy in (None, told.strategy)
        and all(a in (None, b) for a, b in zip(before.costs, told.costs, strict=True))
    )
    if not adds or learned.hypotheses is None:
        return Learned(told)
    left = agreeing(learned.hypotheses, consistent_hypotheses(told, learned.hypotheses))
    return replace(learned, told=told, hypotheses=left) if left else Learned(told)
