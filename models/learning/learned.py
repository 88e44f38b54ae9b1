"""What is known of an application's configs, and what another generation makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from caughtup.models.assignment.decision import Decision
from caughtup.models.assignment.releases import releases_of
from caughtup.models.decisions.exact.generation import in_words
from caughtup.models.decisions.inputs.gathering import GenerationInputs
from caughtup.models.errors import ScenarioError
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.contradiction import (
    ALL_NAMES,
    ASSIGNOR,
    NAMES,
    WOULD_TELL,
    in_doubt,
    is_open,
    said,
    text_of,
)
from caughtup.models.learning.elimination import MOST_DECISIONS, Sifted, sift
from caughtup.models.learning.evidence import Evidence
from caughtup.models.learning.leaders_release import (
    leaders_releases,
    leaders_version,
    likely_releases,
    under_releases,
)
from caughtup.models.learning.probing import probing_interval
from caughtup.models.learning.ranges import Hypotheses, Span, agreeing
from caughtup.models.learning.sifter import Finding
from caughtup.models.learning.told import OTHER_COSTS, UNTOLD, Told, allowing, any_costs, possible
from caughtup.models.parameters import STRATEGY, TAGS
from caughtup.models.records.recommendations import Result

#: Decisions about a suspicion of each generation that the hypotheses explain.
_MOST_OF_SUSPECTED = MOST_DECISIONS // 4
#: Client tags of which any may be those that standbys are spread over.
_MOST_KEYS = 4
#: A leader that got no end offsets so often counts as having the fallback assignor, which it gives
#: way to, if that one explains all other generations, too.
_MOST_WITHOUT_ENDS = 4


@dataclass(frozen=True, slots=True)
class Learned:
    """The hypotheses about an application's configs, each of which may be the truth.

    ``hypotheses`` agree with what was ``told``, and with every generation since ``since`` but for
    those that nobody can judge; None before the first one. ``explained`` counts those of which a
    decision was matched. Where a generation contradicts all of them, ``suspected`` is what
    explains that one and the later ones, from ``suspected_since`` on, and ``hypotheses`` stay as
    they were: it may have been an odd one. The second one settles it. ``probing`` bounds
    ``probing.rebalance.interval.ms``, None where no generation showed it. ``without_ends`` counts
    the generations that only a leader without end offsets can have decided.
    """

    told: Told = UNTOLD
    hypotheses: Hypotheses | None = None
    since: int | None = None
    explained: int = 0
    suspected: Hypotheses = ()
    suspected_since: int | None = None
    probing: Span | None = None
    without_ends: int = 0

    @property
    def possible(self) -> Hypotheses:
        """Everything that may be the truth as far as it agrees with what was told."""
        own = self.hypotheses or ()
        if not self.suspected:
            return own
        return (*own, *agreeing(self.suspected, allowing(self.told, self.suspected)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of a generation: ``match``, ``mismatch`` or ``undetermined``, and why.

    All hypotheses that are left decide what the leader did; or none did, although all else is
    known; or neither. ``decision`` is what one of them decides, one that is left if any is; None
    where nothing could be decided. ``open`` are the configs that are yet to be found where it is
    undetermined, and ``narrowed`` those of which this generation ruled values out: where it is a
    match without any, it was foreseen. ``doubted`` are those that seem to be others than were told
    or learned. ``decisions`` counts those it took. ``unexplained``: all inputs are known,
    and no hypothesis decides what the leader did.
    """

    result: Result
    why: str
    decision: Decision | None = None
    open: tuple[str, ...] = ()
    narrowed: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()
    decisions: int = 0
    unexplained: bool = False


def learn(
    learned: Learned, generation: StreamsGeneration, inputs: GenerationInputs, seen_ms: int
) -> tuple[Learned, Verdict]:
    """Hold what is known of an application's configs against one more generation.

    ``seen_ms`` is when the generation's record was read. Pure: any thread may do it.
    """
    why = _unusable(generation)
    if not why and learned.told.tags is None and len(tag_keys(generation)) > _MOST_KEYS:
        why = f"there are more than {_MOST_KEYS} client tags: tell which of them are {TAGS}"
    if why:
        return learned, Verdict("undetermined", why)
    learned = replace(learned, probing=probing_interval(learned.probing, generation, seen_ms))
    try:
        evidence = Evidence(generation, inputs)
    except ScenarioError as error:
        return learned, Verdict("undetermined", error.message)
    releases, likely = leaders_releases(generation), likely_releases(generation)
    if learned.hypotheses is None:
        every = possible(learned.told, tag_keys(generation), racked=generation.is_racked)
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
    else:
        learned, verdict = _contradicted(learned, sifted, evidence, inputs.inferred)
    return learned, replace(verdict, decisions=evidence.decisions)


def _unusable(generation: StreamsGeneration) -> str:
    """Explain why nothing can be learned of a generation, "" where something can."""
    if not generation.clients:
        return "no member could be read"
    if generation.follows:
        return "its leader is a follower, and did not publish its inputs"
    for member in generation.members():
        if member.assignment is None or member.assignment.error_code:
            return f"the leader gave {member.client_id} no assignment but an error"
    if not releases_of(leaders_version(generation)):
        return f"its leader's release is not modelled: subscriptions {leaders_version(generation)}"
    if len({member.latest_version for member in generation.members()}) > 1:
        return "members are of different releases: a deployment is half done"
    keys = [frozenset(m.client_tags) for m in generation.members()]
    if any(own != keys[0] for own in keys):
        return "members name different client tags: a deployment is half done"
    return ""


def tag_keys(generation: StreamsGeneration) -> frozenset[str]:
    """Name the client tags that all members have, as they themselves say."""
    keys = [frozenset(member.client_tags) for member in generation.members()]
    return frozenset.intersection(*keys) if keys else frozenset()


def _explained(learned: Learned, sifted: Sifted, evidence: Evidence) -> tuple[Learned, Verdict]:
    """Keep what is left of the hypotheses, unless they are themselves in doubt."""
    before = learned.hypotheses or ()
    suspected: Hypotheses = ()
    if learned.suspected:
        suspected = sift(learned.suspected, evidence, _MOST_OF_SUSPECTED).left
    matched = Finding.MATCH in sifted.findings
    after = replace(
        learned,
        hypotheses=before if suspected else sifted.left,
        explained=learned.explained + matched,
        suspected=suspected,
        suspected_since=learned.suspected_since if suspected else None,
    )
    narrowed = tuple(n for n in NAMES if text_of(n, before) != text_of(n, sifted.left))
    if matched and sifted.findings <= {Finding.MATCH, Finding.CONTRADICTED}:
        return after, Verdict("match", "", sifted.decision, narrowed=narrowed)
    doubts = list(sifted.doubts)
    if not doubts:
        between = "between threads, where lags aren't known exactly"
        doubts = [": ".join((between, *sifted.differences[:1]))]
    among = ALL_NAMES if sifted.releases_differ else NAMES
    names = tuple(name for name in among if is_open(name, sifted.left))
    doubts += [
        f"open: {name}, {text_of(name, sifted.left)}, until {WOULD_TELL[name]}" for name in names
    ]
    why = in_words(doubts)
    return after, Verdict(
        "undetermined",
        why,
        sifted.decision,
        open=names,
        narrowed=narrowed,
        unexplained=not (matched or evidence.doubts),
    )


def _contradicted(
    learned: Learned, sifted: Sifted, evidence: Evidence, inferred: Sequence[str]
) -> tuple[Learned, Verdict]:
    """Find which configs explain a generation that contradicts all hypotheses."""
    before = learned.hypotheses or ()
    if inferred and not learned.explained:
        why = in_words([f"inferred: {line}" for line in inferred])
        return learned, Verdict("undetermined", why, sifted.decision)
    keys = tag_keys(evidence.generation)
    still = sift(learned.suspected, evidence).left if learned.suspected else ()
    racked = evidence.generation.is_racked
    every = under_releases(
        possible(UNTOLD, keys, racked=racked, costs=any_costs(learned.told)),
        leaders_releases(evidence.generation),
        leaders_releases(evidence.generation),
    )
    fresh = still or sift(every, evidence).left
    number = evidence.generation.generation
    since = learned.suspected_since if still else number
    if not fresh:
        after = replace(learned, suspected=(), suspected_since=None)
        why = "no configs of Kafka's assignors explain it: " + in_words(sifted.differences)
        result: Result = "undetermined" if learned.told.assignor is None else "mismatch"
        return after, Verdict(result, why, sifted.decision, unexplained=True)
    everything = possible(learned.told, keys, racked=racked, costs=OTHER_COSTS)
    within = agreeing(fresh, everything)
    after = replace(learned, suspected=fresh, suspected_since=since)
    if within:
        names = in_doubt(before, within)
        if still:
            after = replace(
                learned,
                hypotheses=within,
                since=since,
                suspected=(),
                suspected_since=None,
                without_ends=0,
            )
        why = f"from generation {since} on: {said(names, before, within)}"
        return after, _doubting("undetermined", why, sifted, names)
    names = in_doubt(everything, fresh, told_names(learned.told))
    why = f"the settings are contradicted: {said(names, before, fresh)}"
    if sifted.differences:
        why += f"; by them {in_words(sifted.differences)}"
    return after, _doubting("mismatch", why, sifted, names)


def _doubting(result: Result, why: str, sifted: Sifted, names: tuple[str, ...]) -> Verdict:
    return Verdict(result, why, sifted.decision, doubted=names, unexplained=True)


def told_names(told: Told) -> tuple[str, ...]:
    """Name the configs that hypotheses are about and that the settings tell."""
    besides = {TAGS: told.tags is not None, ASSIGNOR: told.assignor is not None}
    besides[STRATEGY] = told.tells_racks
    return tuple(name for name in NAMES if name in told.configs or besides.get(name))
