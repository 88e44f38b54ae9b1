"""A generation's inputs under the configs that are known of its application."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from caughtup.models.assignment.compact import CompactScenario
from caughtup.models.decisions.inputs.gathering import GenerationInputs, members_of, unsettled
from caughtup.models.groups.generation import StreamsGeneration
from caughtup.models.learning.contradiction import doubtful_configs, values_in_words
from caughtup.models.learning.evidence import seen_standbys
from caughtup.models.learning.learned import Learned, tag_keys, told_names
from caughtup.models.learning.probing_interval import PROBING
from caughtup.models.learning.provenance import chosen, known_configs
from caughtup.models.learning.ranges import LAG, STANDBYS, Algorithm, agreeing
from caughtup.models.learning.told import consistent_hypotheses, possible_hypotheses
from caughtup.models.learning.unknown_ends import limits_by_task
from caughtup.models.parameters import DEFAULTS, STRATEGY, TAGS
from caughtup.models.partition_assignor.rebalance import clients_of
from caughtup.models.records.recommendations import KnownConfigRecord
from caughtup.models.records.scenarios import ConfigValue


def with_known_configs(
    inputs: GenerationInputs, generation: StreamsGeneration, learned: Learned
) -> GenerationInputs:
    """Return inputs whose scenario has the known configs, and how each of them is known.

    Configs that were assumed when the inputs were gathered stay assumed only if neither settings
    nor generations show them. A number of standbys that may be another one counts as assumed, too.
    """
    standbys = seen_standbys(generation)
    configs = known_configs(learned, tag_keys(generation), standbys)
    values = {one.name: one.value for one in configs}
    algorithm = chosen(
        learned.possible or possible_hypotheses(learned.told, ()), standbys
    ).algorithm
    config: dict[str, ConfigValue] = {name: values[name] for name in sorted(DEFAULTS)}
    if algorithm.tags:
        config[TAGS] = list(algorithm.tags)
    lag = values[LAG]
    scenario = replace(inputs.scenario, config=config)
    return replace(
        inputs,
        scenario=_with_racks(scenario, algorithm, inputs, generation),
        unknown=(*_besides_lag(inputs), *_of_lag(inputs, generation, lag)),
        assumed=tuple(sorted(_assumed(inputs, configs))),
        configs=configs,
        contradicted=tuple(contradicted_settings(learned)),
    )


def contradicted_settings(learned: Learned) -> Iterator[str]:
    """Yield a sentence for each config that seems to differ from the settings, with both values."""
    everything = consistent_hypotheses(learned.told, learned.suspected)
    if learned.suspected and not agreeing(learned.suspected, everything):
        since = learned.suspected_since
        for name in doubtful_configs(everything, learned.suspected, told_names(learned.told)):
            yield (
                f"{name}: {values_in_words(name, everything)} in the settings, "
                f"{values_in_words(name, learned.suspected)} by its leader's decisions since "
                f"generation {since}"
            )
    interval, span = learned.told.configs.get(PROBING), learned.probing
    if interval is not None and span is not None and not span.low <= interval <= span.high:
        yield (
            f"{PROBING}: {interval} in the settings, {span.low} to {span.high} by the times for which its leader "
            "requested the next rebalance, unless its clock is wrong"
        )


def _with_racks(
    scenario: CompactScenario,
    algorithm: Algorithm,
    inputs: GenerationInputs,
    generation: StreamsGeneration,
) -> CompactScenario:
    """Return a scenario with the racks that an algorithm uses, if any are known."""
    if algorithm.strategy == "none" or inputs.replicas is None:
        return scenario
    traffic, non_overlap = algorithm.costs or (None, None)
    clients = clients_of(members_of(generation))
    topics = {p.topic for one in scenario.tasks.values() for p in (*one.sources, *one.changelogs)}
    return replace(
        scenario,
        config={
            **scenario.config,
            STRATEGY: algorithm.strategy,
            "rack.aware.assignment.traffic_cost": traffic,
            "rack.aware.assignment.non_overlap_cost": non_overlap,
        },
        clients={
            process: replace(client, rack=clients[process].rack)
            for process, client in scenario.clients.items()
        },
        replicas={p: tuple(own) for p, own in inputs.replicas.items() if p.topic in topics},
    )


def _besides_lag(inputs: GenerationInputs) -> Iterator[str]:
    about_lag = {unsettled(task, end) for task, end in inputs.ends.items() if end}
    return (line for line in inputs.unknown if line not in about_lag)


def _of_lag(
    inputs: GenerationInputs, generation: StreamsGeneration, lag: int | str | None
) -> Iterator[str]:
    """Yield the tasks for which it is unknown who is caught up by this acceptable.recovery.lag."""
    clients = clients_of(members_of(generation)).values()
    for task, limits in limits_by_task(clients, inputs.ends).items():
        end = inputs.ends[task]
        if end is not None and any(low <= int(lag or 0) <= high for low, high in limits):
            yield unsettled(task, end)


def _assumed(inputs: GenerationInputs, configs: tuple[KnownConfigRecord, ...]) -> Iterator[str]:
    """Yield the configs that are assumed; those of tags and racks only if they could matter."""
    known = {one.name for one in configs if one.provenance != "assumed"}
    yield from (name for name in inputs.assumed if name not in known)
    if any(one.name == STANDBYS and one.name in known and one.would_tell for one in configs):
        yield STANDBYS
