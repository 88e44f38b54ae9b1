"""Patterns of groups and topics as settings: what is refused, where, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.errors import UserError
from caughtup.models.watching import Watching


@pytest.fixture(autouse=True)
def in_an_empty_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def refusal(text: str) -> str:
    Path("caughtup.toml").write_text(text)
    with pytest.raises(UserError) as failure:
        load_settings()
    return failure.value.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'ignore_groups = ["ok", "(ab"]',
            (
                "setting ignore_groups: entry 2 is not a regular expression, at its character 1"
                " (caughtup.toml)"
            ),
        ),
        (
            'watch_topics = ["a{2,1}"]',
            (
                "setting watch_topics: entry 1 is not a regular expression, at its character 3"
                " (caughtup.toml)"
            ),
        ),
        (
            'watch_groups = ["a", "b"]\nignore_groups = ["b"]',
            (
                "ignore_groups contradicts watch_groups: its entry 1 is entry 2 there, so that no such"
                " group is watched"
            ),
        ),
        (
            'watch_topics = ["a"]\nignore_topics = ["c", "a"]',
            (
                "ignore_topics contradicts watch_topics: its entry 2 is entry 1 there, so that no such"
                " group is watched"
            ),
        ),
        (
            'metrics_granularity = "group"\nmetrics_group_limit = 5',
            "metrics_group_limit contradicts metrics_granularity=group, which has one series a group",
        ),
        (
            "metrics_group_limit = 0",
            "setting metrics_group_limit: it has to be at least 1 (caughtup.toml)",
        ),
        (
            'metrics_granularity = "member"',
            "setting metrics_granularity: it has to be partition, topic or group (caughtup.toml)",
        ),
        ("watch_groups = [3]", "setting watch_groups: it has to be text (caughtup.toml)"),
        ("watch_groups = 3", "setting watch_groups: it has to be a list (caughtup.toml)"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_with_its_place(text: str, line: str) -> None:
    assert refusal(text) == line


def test_a_variables_patterns_are_separated_by_commas_or_a_json_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CAUGHTUP_IGNORE_GROUPS", "a.*, [bc]+")
    assert load_settings().ignore_groups == ("a.*", "[bc]+")
    monkeypatch.setenv("CAUGHTUP_IGNORE_GROUPS", '["a{1,2}", "b"]')
    assert load_settings().ignore_groups == ("a{1,2}", "b")
    monkeypatch.setenv("CAUGHTUP_IGNORE_GROUPS", '["a{1,2}"')
    with pytest.raises(UserError, match="the value begins like a JSON list and is not one"):
        load_settings()


def test_the_services_own_group_is_folded_away_whatever_its_name_is() -> None:
    Path("caughtup.toml").write_text('application_id = "lag.service"')
    found = Watching(load_settings().watching())
    assert not found.is_watched("lag.service")
    assert found.is_watched("lag-service")


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        ("checkpoints", "is not [NAME=]URI, nor [NAME=]/FOLDER"),
        (
            "ftp://host/a",
            (
                "is of ftp:, which can't be read;"
                " file: and s3, s3a, gs, gcs, abfs, abfss, hdfs, viewfs: can"
            ),
        ),
        ("s3://me:secret@bucket/a", "has a password in it, which would be shown"),
    ],
)
def test_checkpoints_that_cannot_be_read_are_refused(entry: str, line: str) -> None:
    said = refusal(f'spark_checkpoints = ["/data/ok", "{entry}"]')
    assert said == f"setting spark_checkpoints: entry 2 {line} (caughtup.toml)"


def test_names_of_queries_are_reserved_where_there_are_checkpoints() -> None:
    Path("caughtup.toml").write_text("")
    assert Watching(load_settings().watching()).is_watched("spark:orders")
    Path("caughtup.toml").write_text('spark_checkpoints = ["orders=/data/orders"]')
    found = Watching(load_settings().watching())
    assert not found.is_watched("spark:orders")
    assert found.is_query_watched("spark:orders")
    assert found.is_watched("spark-orders")
