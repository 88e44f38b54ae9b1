"""Values of settings: what is taken, from text too, and what is said of all that is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from caughtup.agents.configuration.validating import validated


def said(**values: Any) -> list[str]:
    return validated(values, {}, {})[1]


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("web_port", "8081", 8081),
        ("web_port", " 8081 ", 8081),
        ("web_port", 8081.0, 8081),
        ("lag_interval", "2.5", 2.5),
        ("lag_interval", 2, 2.0),
        ("web_token_file", Path("token"), Path("token")),
        *(("own_topics", given, True) for given in (True, 1, "1", "true", "Yes", "ON")),
        *(("own_topics", given, False) for given in (False, 0, "0", "FALSE", "no", "off")),
        ("state_file", None, None),
        ("web_token_file", "/etc/token", Path("/etc/token")),
        ("watch_groups", "a, b,", ("a", "b")),
        ("watch_groups", '["a,b"]', ("a,b",)),
        ("watch_groups", ["a"], ("a",)),
        ("compat_metrics", "yes", ("kafka_exporter",)),
        ("compat_metrics", False, ()),
        ("kafka", {"a": "1", "b": 1, "c": True}, {"a": "1", "b": 1, "c": True}),
        ("kafka", {"a": 1e6}, {"a": 1_000_000}),
        ("reassignment_budget", None, None),
    ],
)
def test_values_are_taken_from_files_and_from_text(name: str, given: object, value: object) -> None:
    settings, wrong = validated({name: given}, {}, {})
    assert wrong == []
    found = getattr(settings, name)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("web_port", "x", "it has to be a whole number"),
        ("web_port", 1.5, "it has to be a whole number"),
        ("web_port", True, "it has to be a whole number"),
        ("web_port", -1, "it has to be at least 0"),
        ("web_port", 65_536, "it has to be at most 65535"),
        ("lag_interval", "nan", "it has to be a number that is finite"),
        ("end_offsets_interval", 0, "it has to be greater than 0"),
        ("own_topics", "perhaps", "it has to be true or false"),
        ("own_topics", 2, "it has to be true or false"),
        ("web_token_file", 1, "it has to be a path"),
        ("web_host", 1, "it has to be text"),
        ("web_host", None, "it has to be text"),
        ("cluster_name", "", "it has to be at least 1 character long"),
        ("cluster_name", "x" * 101, "it has to be at most 100 characters long"),
        ("watch_groups", 1, "it has to be a list"),
        ("watch_groups", [1], "it has to be text"),
        ("watch_groups", '["a', "the value begins like a JSON list and is not one"),
        ("log_format", "xml", "it has to be text or json"),
        ("compat_metrics", ["x"], "it has to be kafka_exporter, kminion, burrow_exporter or "),
        ("applications", [], "it has to be a table"),
    ],
)
def test_what_it_has_to_be_is_said_by_name(name: str, given: object, words: str) -> None:
    (line,) = said(**{name: given})
    assert line.startswith(f"setting {name}: {words}")


@pytest.mark.parametrize(
    ("config", "given", "words"),
    [
        ("max.warmup.replicas", 0, "it has to be at least 1"),
        ("rack.aware.assignment.traffic_cost", 1 << 31, "it has to be at most 2147483647"),
        ("rack.aware.assignment.tags", ["a"] * 6, "it has to be a list of at most 5"),
        ("assignor", "x", "it has to be high_availability, sticky, public_sticky or "),
    ],
)
def test_a_config_of_an_application_is_named_with_it(
    config: str, given: object, words: str
) -> None:
    (line,) = said(applications={"a.b": {config: given}})
    assert line.startswith(f"setting applications.a.b.{config}: {words}")


def test_all_that_is_wrong_is_said_and_each_once() -> None:
    changelogs = {"x": ["t"], "1": "t", "2": [1]}
    assert said(
        applications={"a": {"changelogs": changelogs, "quite.another": 1}, "b": 1},
        kafka={"a": [], "b": None},
    ) == [
        "setting applications.a.changelogs.x: it has to be a whole number",
        "setting applications.a.changelogs.1: it has to be a list",
        "setting applications.a.changelogs.2: it has to be text",
        "unknown setting applications.a.quite.another; see docs/reference/settings.md for the list",
        "setting applications.b: it has to be a table",
        "setting kafka.a: it has to be text, a whole number, true or false",
        "setting kafka.b: it has to be text, a whole number, true or false",
    ]


def test_settings_that_contradict_each_other_are_said_together() -> None:
    _, wrong = validated(
        {
            "own_topics": False,
            "workers": "shared",
            "web_tls_key": "k",
            "s3_access_key": "a",
            "watch_groups": ["a"],
            "ignore_groups": ["a"],
        },
        {},
        {},
    )
    assert wrong == [
        "s3_access_key and s3_secret_key_file need each other",
        "ignore_groups contradicts watch_groups: its entry 1 is entry 1 there, so that no such group is watched",
        "workers = shared needs own_topics = true",
        "web_tls_key needs web_tls_certificate",
    ]
