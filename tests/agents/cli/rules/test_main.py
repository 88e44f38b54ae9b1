"""``caughtup rules``: what can be set, what is refused, and that words follow their figures."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

from caughtup.agents.cli.rules.main import rules, thresholds


def run(*arguments: str) -> Result:
    return CliRunner().invoke(rules, arguments)


def block(text: str, alert: str) -> str:
    """The text of one alert."""
    return text.split(f"- alert: {alert}\n")[1].split("- alert:")[0]


def test_what_is_set_is_in_its_own_alert_and_nowhere_else_and_words_follow_it() -> None:
    plain, made = run(), run("--set", "CaughtupReaderNotReady.for=1h30m")
    assert (plain.exit_code, made.exit_code) == (0, 0)
    found = block(made.output, "CaughtupReaderNotReady")
    assert "for: 1h30m\n" in found
    assert '"For 1 hour 30 minutes it has been reading the log;' in found
    assert made.output.replace(found, block(plain.output, "CaughtupReaderNotReady")) == plain.output
    assert "@" not in plain.output


def test_thresholds_and_severities_can_be_set() -> None:
    made = run(
        *("--set", "CaughtupRetentionRunsOut.threshold=0.5"),
        *("--set", "CaughtupRetentionRunsOut.severity=page"),
    ).output
    found = block(made, "CaughtupRetentionRunsOut")
    assert "> 0.5)" in found
    assert "{severity: page}" in found


def test_runbooks_can_be_clicked_below_a_base() -> None:
    assert "runbook_url" not in run().output
    made = run("--runbook-base", "https://example.com/blob/main/").output
    url = "https://example.com/blob/main/docs/operating.md#caughtupdown"
    assert f'runbook_url: "{url}"\n' in block(made, "CaughtupDown")
    assert made.count("runbook_url") == made.count("- alert:")


def test_alerts_lead_to_the_page_where_its_base_is_given() -> None:
    assert "page_url" not in run().output
    made = run("--page-base", "https://example.com/caughtup/").output
    assert "@" not in made
    assert 'page_url: "https://example.com/caughtup/health"\n' in block(made, "CaughtupReaderHangs")
    found = block(made, "CaughtupGroupStopped")
    assert 'page_url: "https://example.com/caughtup/groups/{{ $labels.group | urlquery' in found
    assert "page_url" not in block(made, "CaughtupDown"), "there is no page then"
    assert made.count("page_url") == made.count("- alert:") - 1


def test_all_that_can_be_set_is_listed() -> None:
    listed = run("--list").output.splitlines()
    assert "CaughtupDown.for=2m" in listed
    assert "CaughtupReaderHangs.threshold=30" in listed
    assert len(listed) == len(set(listed)) == len(thresholds())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "CaughtupDown"), "NAME=VALUE is expected"),
        (
            ("--set", "CaughtupDwn.for=1m"),
            "unknown setting CaughtupDwn.for; did you mean CaughtupDown.for?",
        ),
        (("--set", "nothing=1"), "unknown setting nothing; `caughtup rules --list` lists them all"),
        (("--set", "CaughtupDown.for=soon"), "CaughtupDown.for has to be a duration such as 90s"),
        (("--set", "CaughtupDown.for=1m\n"), "CaughtupDown.for has to be a duration such as 90s"),
        (
            ("--set", "CaughtupReaderHangs.threshold=-1"),
            "CaughtupReaderHangs.threshold has to be a number",
        ),
        (("--set", "CaughtupDown.severity={x"), "CaughtupDown.severity has to be a word"),
        (("--runbook-base", "docs"), "a URL is expected"),
        (("--page-base", "caughtup:8080"), "a URL is expected"),
        (("--page-base", "http://caughtup:8080/{{ $labels.group }}"), "a URL is expected"),
    ],
)
def test_what_makes_no_rules_is_refused_by_its_name(arguments: tuple[str, ...], words: str) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert words in refused.output
