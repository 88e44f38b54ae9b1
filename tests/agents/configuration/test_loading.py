"""Settings: where they come from, which of them wins, and what is refused by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from caughtup.agents.configuration.loading import load_settings, read_settings
from caughtup.agents.declared_settings import settings_of
from caughtup.agents.errors import UserError
from caughtup.agents.settings import Settings
from caughtup.models.parameters import DEFAULTS, ApplicationParameters
from caughtup.models.security.kafka import SERVICE


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment without settings, in a directory without a settings file."""
    import os

    for name in [name for name in os.environ if name.startswith("CAUGHTUP_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def written(text: str, path: str = "caughtup.toml") -> Path:
    Path(path).write_text(text)
    return Path(path)


def refusal(config: Path | None = None, **overrides: Any) -> str:
    with pytest.raises(UserError) as failure:
        load_settings(config, **overrides)
    assert "\n" not in failure.value.message
    return failure.value.message


def test_without_anything_set_there_are_defaults_that_work_on_loopback() -> None:
    settings = load_settings()
    assert settings.bootstrap_servers == "127.0.0.1:9092"
    assert (settings.web_host, settings.web_port) == ("127.0.0.1", 8080)
    assert settings.parameters() == {}


def test_options_win_over_variables_and_these_over_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written('web_port = 1\nlog_level = "error"\napplication_id = "file"\n')
    monkeypatch.setenv("CAUGHTUP_WEB_PORT", "2")
    monkeypatch.setenv("CAUGHTUP_LOG_LEVEL", "warning")
    settings = load_settings(web_port=3, log_level=None)
    assert (settings.web_port, settings.log_level, settings.application_id) == (
        3,
        "warning",
        "file",
    )


def test_the_file_is_the_one_named_then_the_variables_then_the_one_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written("web_port = 1")
    written("web_port = 2", "variable.toml")
    assert load_settings().web_port == 1
    monkeypatch.setenv("CAUGHTUP_CONFIG", "variable.toml")
    assert load_settings().web_port == 2
    assert load_settings(written("web_port = 3", "named.toml")).web_port == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("web_prot = 1", "unknown setting web_prot", id="unknown"),
        pytest.param("[kafak]", "unknown setting kafak", id="unknown table"),
        pytest.param("web_port = 70000", "setting web_port: ", id="too large"),
        pytest.param('web_port = "http"', "setting web_port: ", id="not a number"),
        pytest.param("end_offsets_interval = 0", "setting end_offsets_interval: ", id="no pause"),
        pytest.param('log_level = "loud"', "setting log_level: ", id="no such level"),
        pytest.param('application_id = ""', "setting application_id: ", id="empty"),
        pytest.param("kafka = 1", "setting kafka: ", id="not a table"),
        pytest.param(
            '[applications.a]\n"max.warmups" = 1',
            "unknown setting applications.a.max.warmups",
            id="unknown config",
        ),
        pytest.param(
            '[applications.a]\n"max.warmup.replicas" = 0',
            "setting applications.a.max.warmup.replicas: ",
            id="below Kafka's minimum",
        ),
        pytest.param(
            '[applications.a]\n"probing.rebalance.interval.ms" = 59999',
            "setting applications.a.probing.rebalance.interval.ms: ",
            id="more often than Kafka probes",
        ),
        pytest.param(
            "[applications.a.changelogs]\nx = ['t']",
            "setting applications.a.changelogs.x",
            id="a subtopology that is no number",
        ),
        pytest.param("web_port = ", "is not TOML", id="not TOML"),
        pytest.param("web_port = 1\nweb_port = 2", "is not TOML", id="twice"),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused_by_the_settings_name(
    text: str, words: str
) -> None:
    assert words in refusal(written(text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "missing.toml" in refusal(Path("missing.toml"))
    assert str(tmp_path) in refusal(tmp_path)
    Path("latin.toml").write_bytes(b'application_id = "caf\xe9"')
    assert refusal(Path("latin.toml")).endswith(
        "latin.toml is not TOML: byte 21 is not text in UTF-8"
    )
    deep = written("x = " + "[" * 10_000)
    assert "is not TOML" in refusal(deep)


def test_a_variable_that_is_no_setting_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUGHTUP_WEB_PROT", "1")
    assert refusal() == (
        "unknown setting CAUGHTUP_WEB_PROT in the environment; did you mean CAUGHTUP_WEB_PORT?"
    )
    monkeypatch.delenv("CAUGHTUP_WEB_PROT")
    monkeypatch.setenv("CAUGHTUP_XYZ", "1")
    assert refusal() == "unknown setting CAUGHTUP_XYZ in the environment; unset it"


@pytest.mark.parametrize(
    "name",
    [
        "CAUGHTUP_CACHE",
        "CAUGHTUP_HISTORY",
        "CAUGHTUP_SERVICE_HOST",
        "CAUGHTUP_SERVICE_PORT",
        "CAUGHTUP_SERVICE_PORT_HTTP",
        "CAUGHTUP_PORT",
        "CAUGHTUP_PORT_8080_TCP_ADDR",
        "CAUGHTUP_WEB_SERVICE_HOST",
        "CAUGHTUP_WEB_PORT_8080_TCP",
        "CAUGHTUP_UI_SERVICE_PORT_HTTP",
    ],
)
def test_variables_of_others_that_look_like_ours_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    assert load_settings() == Settings()


@pytest.mark.parametrize("address", ["tcp://10.96.7.1:8080", "udp://[fd00::1]:53"])
def test_the_address_of_a_service_named_caughtup_web_is_no_port(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    monkeypatch.setenv("CAUGHTUP_WEB_PORT", address)
    monkeypatch.setenv("CAUGHTUP_PAGE_PORT", address)
    assert load_settings().web_port == 8080
    assert "CAUGHTUP_WEB_PORT is the address of a Kubernetes Service" in caplog.text
    assert load_settings(written("web_port = 9000")).web_port == 9000
    assert load_settings(web_port=9001).web_port == 9001
    monkeypatch.setenv("CAUGHTUP_PAGE_PORT", "8080")
    assert refusal().startswith("unknown setting CAUGHTUP_PAGE_PORT in the environment; ")


def test_tables_can_be_given_in_a_variable_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUGHTUP_KAFKA", '{"sasl.mechanism": "PLAIN"}')
    assert load_settings().kafka == {"sasl.mechanism": "PLAIN"}
    monkeypatch.setenv("CAUGHTUP_KAFKA", "sasl.mechanism=PLAIN")
    assert refusal().startswith("settings in the environment: ")


def test_a_bad_variable_is_refused_by_the_settings_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUGHTUP_WEB_PORT", "http")
    assert refusal().startswith("setting web_port: ")


def test_applications_are_told_in_kafkas_own_names() -> None:
    settings = load_settings(
        written(
            """
            [applications."orders.v2"]
            "num.standby.replicas" = 1
            "rack.aware.assignment.tags" = ["zone"]
            assignor = "sticky"
            changelogs = {0 = ["orders-a-changelog"], 1 = []}
            [applications.plain]
            """
        )
    )
    assert settings.parameters() == {
        "orders.v2": ApplicationParameters(
            {"num.standby.replicas": 1}, {0: ("orders-a-changelog",), 1: ()}, ("zone",), "sticky"
        ),
        "plain": ApplicationParameters(),
    }


def test_every_config_that_decides_assignments_can_be_told() -> None:
    lines = "\n".join(f'"{name}" = {value}' for name, value in DEFAULTS.items())
    (parameters,) = load_settings(written("[applications.a]\n" + lines)).parameters().values()
    assert parameters.assumed() == ()


def test_kafkas_properties_pass_through_as_they_are() -> None:
    text = '[kafka]\n"socket.timeout.ms" = 100\n"enable.ssl.certificate.verification" = false'
    kafka = load_settings(written(text)).kafka
    assert kafka == {"socket.timeout.ms": 100, "enable.ssl.certificate.verification": False}
    assert kafka["enable.ssl.certificate.verification"] is False


def test_all_that_is_wrong_is_named_at_once_a_line_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
        web_port = 70000
        lag_intervall = 3
        end_offsets_interval = inf
        [kafka]
        "socket.timeout.ms" = 1
        "fetch.mn.bytes" = 1
        "sasl.pasword" = "x"
        "sasl.username" = ["x"]
        [applications.a]
        "max.warmup.replica" = 1
        "num.standby.replicas" = "many"
        """
    monkeypatch.setenv("CAUGHTUP_WEB_PROT", "1")
    monkeypatch.setenv("CAUGHTUP_LOG_LEVEL", "loud")
    with pytest.raises(UserError) as failure:
        read_settings(written(text), clients=SERVICE, topic_replication_factor=-2)
    failure.value.show()
    assert sorted(capsys.readouterr().err.splitlines()) == [
        f"caughtup: {line}"
        for line in (
            "setting applications.a.num.standby.replicas: it has to be a whole number (caughtup.toml)",
            "setting end_offsets_interval: it has to be a number that is finite (caughtup.toml)",
            "setting kafka.fetch.mn.bytes: no client has such a property; did you mean fetch.min.bytes?",
            "setting kafka.sasl.pasword: librdkafka has no such property; did you mean sasl.password?",
            "setting kafka.sasl.username: it has to be text, a whole number, true or false (caughtup.toml)",
            "setting kafka.socket.timeout.ms: it has to be 10 to 300000",
            "setting log_level: it has to be debug, info, warning or error (CAUGHTUP_LOG_LEVEL)",
            "setting topic_replication_factor: it has to be at least -1 (--topic-replication-factor)",
            "setting web_port: it has to be at most 65535 (caughtup.toml)",
            "unknown setting CAUGHTUP_WEB_PROT in the environment; did you mean CAUGHTUP_WEB_PORT?",
            "unknown setting applications.a.max.warmup.replica (caughtup.toml); did you mean applications.a.max.warmup.replicas?",
            "unknown setting lag_intervall (caughtup.toml); did you mean lag_interval?",
        )
    ]


@pytest.mark.parametrize(
    "values",
    [
        {name: value}
        for name in settings_of(Settings)
        for value in ("", "x" * 10_000, -1e300, float("nan"), True, [None], {"a": {"b": [1]}}, b"")
    ],
    ids=lambda values: f"{next(iter(values))} {str(next(iter(values.values())))[:9]}",
)
def test_no_word_of_a_library_is_in_what_is_said_of_a_bad_value(values: dict[str, Any]) -> None:
    try:
        load_settings(**values)
    except UserError as failure:
        said = failure.message
        assert not re.search(
            "[Ii]nput|[Vv]alidation|msgspec|Expected|dictionary|instance|tuple|NoneType", said
        )
        assert "the value is not valid" not in said
        assert "x" * 100 not in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"security.protocol" = "SSL"', "Kafka's properties belong under [kafka]"),
        ('sasl.username = "us"', "Kafka's properties belong under [kafka]"),
        ('bootstrap_servers = "PLAINTEXT://broker:9092"', "HOST:PORT is expected"),
        ('bootstrap_servers = "broker:909211"', "HOST:PORT is expected"),
        ('bootstrap_servers = "broker:9092,"', "HOST:PORT is expected"),
        ('grafana_url = "grafana.example.com"', "http:// or https:// is expected"),
        ('grafana_url = "javascript:alert(1)"', "http:// or https:// is expected"),
        ('docs_url = "https://me:secret@docs.example.com"', "http:// or https:// is expected"),
        ('docs_url = "https://docs.example.com/a b"', "http:// or https:// is expected"),
        ('web_tls_key = "key.pem"', "web_tls_key needs web_tls_certificate"),
        ('cluster_name = ""', "at least 1 character long"),
    ],
)
def test_what_is_often_done_wrong_is_told_as_it_has_to_be(text: str, words: str) -> None:
    assert words in refusal(written(text))


@pytest.mark.parametrize("servers", ["a", "a:1", "a:1, b.c:65535", "[::1]:9092", "127.0.0.1:9"])
def test_addresses_of_every_form_are_taken(servers: str) -> None:
    assert load_settings(bootstrap_servers=servers).bootstrap_servers == servers


def test_names_with_dots_need_no_quotation_marks_in_tables() -> None:
    settings = load_settings(
        written(
            """
            kafka.security.protocol = "SSL"
            [applications.orders]
            max.warmup.replicas = 4
            changelogs = {0 = ["a"]}
            """
        )
    )
    assert settings.kafka == {"security.protocol": "SSL"}
    assert settings.parameters()["orders"].config == {"max.warmup.replicas": 4}
    assert settings.parameters()["orders"].changelogs == {0: ("a",)}


def test_an_applications_configs_are_merged_too(monkeypatch: pytest.MonkeyPatch) -> None:
    written('[applications.a]\n"max.warmup.replicas" = 3\nchangelogs = {0 = ["x"]}')
    monkeypatch.setenv("CAUGHTUP_APPLICATIONS", '{"a": {"num.standby.replicas": 1}}')
    loaded = read_settings()
    assert loaded.settings.parameters()["a"] == ApplicationParameters(
        {"max.warmup.replicas": 3, "num.standby.replicas": 1}, {0: ("x",)}
    )
    assert loaded.origins["applications.a"] == "CAUGHTUP_APPLICATIONS"
