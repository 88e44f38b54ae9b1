"""Which changelog belongs to which subtopology: as told, or inferred by rules that say so."""

from __future__ import annotations

from caughtup.models.tasks.topology import Changelogs, find_changelogs


def changelogs(sources: dict[str, int], counts: dict[str, int]) -> Changelogs:
    return find_changelogs("app", sources, counts, None)


def test_what_the_operator_told_is_taken_as_it_is() -> None:
    found = find_changelogs(
        "app", {"in": 0}, {"in": 3, "app-seen-changelog": 3}, {1: ("b", "a"), 0: ()}
    )
    assert found == Changelogs({0: (), 1: ("b", "a")}, "settings")


def test_a_changelog_goes_with_the_repartition_topic_of_its_store() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {"in": 3, "app-counts-repartition": 3, "app-counts-changelog": 3},
    )
    assert found.of == {1: ("app-counts-changelog",)}
    assert found.provenance == "inferred"
    assert found.inferred == (
        "app-counts-changelog belongs to subtopology 1: app-counts-repartition feeds it",
    )


def test_a_changelog_goes_where_alone_are_as_many_tasks_as_it_has_partitions() -> None:
    found = changelogs({"in": 0, "clicks": 1}, {"in": 3, "clicks": 6, "app-seen-changelog": 6})
    assert found.of == {1: ("app-seen-changelog",)}
    assert found.inferred == (
        "app-seen-changelog belongs to subtopology 1: only it has 6 partitions",
    )


def test_a_subtopology_has_as_many_tasks_as_its_widest_source_topic_has_partitions() -> None:
    found = changelogs(
        {"in": 0, "more": 0, "clicks": 1}, {"in": 2, "more": 6, "clicks": 2, "app-s-changelog": 2}
    )
    assert found.of == {1: ("app-s-changelog",)}


def test_the_last_changelog_left_goes_to_the_last_subtopology_left() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {
            "in": 3,
            "app-counts-repartition": 3,
            "app-counts-changelog": 3,
            "app-seen-changelog": 3,
        },
    )
    assert found.of == {0: ("app-seen-changelog",), 1: ("app-counts-changelog",)}
    assert found.inferred[-1] == (
        "app-seen-changelog belongs to subtopology 0: no other has no changelog"
    )
    assert found.unplaced == ()


def test_the_last_one_left_is_not_placed_where_it_does_not_fit() -> None:
    found = changelogs(
        {"in": 0, "app-counts-repartition": 1},
        {
            "in": 4,
            "app-counts-repartition": 3,
            "app-counts-changelog": 3,
            "app-seen-changelog": 5,
        },
    )
    assert found.of == {1: ("app-counts-changelog",)}
    assert found.unplaced == ("app-seen-changelog",)


def test_changelogs_that_fit_several_subtopologies_are_left_unplaced_and_named() -> None:
    found = changelogs(
        {"in": 0, "clicks": 1},
        {"in": 3, "clicks": 3, "app-b-changelog": 3, "app-a-changelog": 3},
    )
    assert found.of == {}
    assert found.unplaced == ("app-a-changelog", "app-b-changelog")
    assert found.inferred == ()


def test_several_stores_of_one_subtopology_are_all_its_own_in_order() -> None:
    found = changelogs(
        {"in": 0, "clicks": 1},
        {"in": 3, "clicks": 6, "app-b-changelog": 6, "app-a-changelog": 6},
    )
    assert found.of == {1: ("app-a-changelog", "app-b-changelog")}


def test_topics_of_others_are_no_changelogs_of_this_application() -> None:
    counts = {"in": 3, "other-s-changelog": 3, "app2-s-changelog": 3, "app-s-repartition": 3}
    assert changelogs({"in": 0}, counts) == Changelogs({}, "inferred")


def test_nothing_known_leaves_every_changelog_unplaced() -> None:
    assert changelogs({}, {"app-s-changelog": 3}).unplaced == ("app-s-changelog",)


def test_the_order_in_which_topics_were_seen_does_not_matter() -> None:
    sources = {"in": 0, "clicks": 1, "app-counts-repartition": 2}
    counts = {
        "in": 3,
        "clicks": 6,
        "app-counts-repartition": 3,
        "app-a-changelog": 3,
        "app-b-changelog": 6,
        "app-counts-changelog": 3,
    }
    again = changelogs(dict(reversed(sources.items())), dict(reversed(counts.items())))
    assert again == changelogs(sources, counts)


def test_where_state_is_reported_without_a_changelog_the_only_source_serves_as_one() -> None:
    """A table read straight from its topic, with topology.optimization."""
    counts = {"in": 3, "clicks": 3, "app-a-changelog": 3, "app-a-repartition": 3}
    found = find_changelogs(
        "app", {"in": 0, "app-a-repartition": 1, "clicks": 2}, counts, None, {0, 1}
    )
    assert found.of == {0: ("in",), 1: ("app-a-changelog",)}
    assert found.inferred[-1] == (
        "in is the changelog of subtopology 0, which it feeds: "
        "state is reported, and there is no other topic for it"
    )
    assert found.tentative


def test_which_of_several_sources_serves_as_changelog_cannot_be_told() -> None:
    found = find_changelogs("app", {"in": 0, "more": 0}, {"in": 3, "more": 3}, None, {0})
    assert found == Changelogs({}, "inferred")


def test_no_source_serves_as_changelog_while_a_changelog_is_unplaced() -> None:
    counts = {"in": 3, "clicks": 3, "app-a-changelog": 3, "app-b-changelog": 3}
    found = find_changelogs("app", {"in": 0, "clicks": 1}, counts, None, {0, 1})
    assert found.of == {}
    assert not found.tentative
