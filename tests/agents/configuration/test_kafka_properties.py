"""``[kafka]`` from the file, variables and options; secrets from files, and in no message."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import trustme
from click.testing import CliRunner

from caughtup.agents.cli.options import Connection, settings_of
from caughtup.agents.configuration.loading import load_settings
from caughtup.agents.configuration.validating import validated
from caughtup.agents.errors import UserError
from caughtup.agents.kafka import property_problems
from caughtup.agents.main import main
from caughtup.agents.settings import Settings
from caughtup.models.security.kafka import KafkaClient

SECRET = "hunter2-correct-horse"
FILE = """
[kafka]
"security.protocol" = "SASL_SSL"
"ssl.ca.location" = "ca.pem"
"sasl.mechanism" = "PLAIN"
"sasl.username" = "file"
"sasl.password" = "of the file"
"""


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("CAUGHTUP_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    trustme.CA().cert_pem.write_to_path("ca.pem")


def written(text: str = FILE) -> None:
    Path("caughtup.toml").write_text(text)


def given(*properties: str, clients: tuple[KafkaClient, ...] = ()) -> Settings:
    return settings_of(Connection(properties=properties), *([clients] if clients else []))


def refusal(*properties: str) -> str:
    with pytest.raises(UserError) as failure:
        given(*properties)
    assert "\n" not in failure.value.message
    assert SECRET not in failure.value.message
    return failure.value.message


def test_a_variable_adds_to_the_files_table_and_keeps_its_tls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written()
    monkeypatch.setenv("CAUGHTUP_KAFKA", '{"sasl.password": "of the variable"}')
    assert load_settings().kafka == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": "ca.pem",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "file",
        "sasl.password": "of the variable",
    }


def test_single_variables_win_over_the_table_and_options_over_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written()
    monkeypatch.setenv("CAUGHTUP_KAFKA", '{"sasl.password": "table", "sasl.username": "table"}')
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD", "single")
    monkeypatch.setenv("CAUGHTUP_KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM", "none")
    monkeypatch.setenv("CAUGHTUP_KAFKA_LOG_LEVEL", "3")
    kafka = given("sasl.username=option").kafka
    assert (kafka["sasl.username"], kafka["sasl.password"]) == ("option", "single")
    assert kafka["ssl.endpoint.identification.algorithm"] == "none"
    assert kafka["ssl.ca.location"] == "ca.pem"
    assert kafka["log_level"] == "3"


def test_applications_are_merged_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    written('[applications.a]\n"max.warmup.replicas" = 3\n[applications.b]\n')
    monkeypatch.setenv("CAUGHTUP_APPLICATIONS", '{"b": {"max.warmup.replicas": 4}}')
    parameters = load_settings().parameters()
    assert {name: one.value("max.warmup.replicas") for name, one in parameters.items()} == {
        "a": 3,
        "b": 4,
    }


def test_a_password_is_read_from_a_file_wherever_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("secret").write_text(f"{SECRET}\n")
    written(FILE.replace('"sasl.password" = "of the file"', '"sasl.password.file" = "secret"'))
    assert load_settings().kafka["sasl.password"] == SECRET
    assert "sasl.password.file" not in load_settings().kafka
    # Of two places the later one counts, whichever of the two it says.
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD", "single")
    Path("secret").unlink()
    assert load_settings().kafka["sasl.password"] == "single"
    Path("another").write_text("another")
    assert given("sasl.password.file=another").kafka["sasl.password"] == "another"
    monkeypatch.delenv("CAUGHTUP_KAFKA_SASL_PASSWORD")
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD_FILE", "another")
    assert load_settings().kafka["sasl.password"] == "another"


@pytest.mark.parametrize(("text", "words"), [(None, "No such file"), ("\n", "the file is empty")])
def test_a_secret_that_cannot_be_read_is_named(text: str | None, words: str) -> None:
    if text is not None:
        Path("secret").write_text(text)
    said = refusal("sasl.password.file=secret")
    assert said.startswith("setting kafka.sasl.password_file: secret: ")
    assert words in said


def test_a_secret_and_its_file_in_one_place_are_refused() -> None:
    said = refusal(f"sasl.password={SECRET}", "sasl.password.file=secret")
    assert said.startswith("setting kafka.sasl.password: ")


def test_variables_of_a_kubernetes_service_named_caughtup_kafka_are_no_properties(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SERVICE_HOST", "SERVICE_PORT_TLS", "PORT", "PORT_9092_TCP_ADDR"):
        monkeypatch.setenv(f"CAUGHTUP_KAFKA_{name}", "10.0.0.1")
    assert load_settings().kafka == {}


def test_a_password_is_in_no_representation_of_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD", SECRET)
    settings = load_settings()
    assert settings.kafka["sasl.password"] == SECRET
    assert SECRET not in f"{settings!r} {settings!s} {settings}"


@pytest.mark.parametrize(
    "text",
    [
        f'[kafka]\n"sasl.password" = ["{SECRET}"]',
        f'[kafka]\n"sasl.password" = {{x = "{SECRET}"}}',
        f'kafka = "{SECRET}"',
        f'kafka = ["{SECRET}"]',
        f'[kafka]\n"sasl.password" = "{SECRET}',
        f'[kafka]\n"sasl.password" = {SECRET}',
        f'web_port = "{SECRET}"',
        f'[kafka]\n"sasl.pasword" = "{SECRET}"',
    ],
)
def test_a_password_is_in_no_message_about_settings(text: str) -> None:
    written(text)
    refusal()


def test_a_password_in_a_broken_variable_is_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUGHTUP_KAFKA", f'{{"sasl.password": "{SECRET}"')
    assert "CAUGHTUP_KAFKA is not a JSON object" in refusal()
    monkeypatch.setenv("CAUGHTUP_KAFKA", f'"{SECRET}"')
    assert "CAUGHTUP_KAFKA is not a JSON object" in refusal()
    monkeypatch.delenv("CAUGHTUP_KAFKA")
    # Not even where somebody else makes the settings and prints what is wrong, or them.
    settings, wrong = validated({"kafka": {"sasl.password": [SECRET]}}, {}, {})
    assert wrong
    assert SECRET not in f"{settings}{wrong}"
    assert SECRET not in repr(Settings(kafka={"sasl.password": SECRET}))


def test_what_a_client_cannot_honour_is_refused_before_anything_is_started() -> None:
    said = refusal("security.protocol=SSL", "ssl.providers=legacy")
    assert said.startswith("setting kafka.ssl.providers: aiokafka, ")
    said = refusal("bootstrap.servers=elsewhere:9092")
    assert said == "setting kafka.bootstrap.servers: use bootstrap_servers, outside of [kafka]"


TICKET = ("security.protocol=SASL_SSL", "sasl.mechanism=GSSAPI")


def test_a_ticket_is_refused_where_librdkafka_or_this_machine_has_no_way_to_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(property_problems, "has_gssapi", lambda: False)
    monkeypatch.setattr(property_problems, "find_spec", lambda _: None)
    assert refusal(*TICKET).startswith("setting kafka.sasl.mechanism: librdkafka is built without")
    monkeypatch.setattr(property_problems, "has_gssapi", lambda: True)
    assert refusal(*TICKET).startswith("setting kafka.sasl.kerberos.keytab: it is not set; ")
    said = refusal(*TICKET, "sasl.kerberos.keytab=/caughtup.keytab")
    assert said.endswith("; type: pip install 'caughtup[kerberos]'")
    monkeypatch.setattr(property_problems, "find_spec", lambda _: object())
    assert given(*TICKET, "sasl.kerberos.keytab=/caughtup.keytab").kafka


@pytest.mark.parametrize(
    "command", [["lag"], ["explain", "group"], ["run"], ["check"], ["reassignments"]]
)
def test_a_command_refuses_what_one_of_its_clients_cannot_honour(command: list[str]) -> None:
    ran = CliRunner().invoke(
        main, [*command, "-X", "security.protocol=SASL_SSL", "-X", "ssl.providers=x"]
    )
    assert ran.exit_code == 1
    assert "setting kafka.ssl.providers: aiokafka" in ran.output


@pytest.mark.parametrize("job", ["history", "rates", "generations"])
def test_jobs_answer_for_sparks_client_before_spark_is_started(job: str) -> None:
    places = [["--output", "x"], ["--checkpoint", "x"]]
    needed = {"history": [0, 1], "rates": [1], "generations": [0]}[job]
    arguments = ["pipeline", job, *(part for place in needed for part in places[place])]
    ran = CliRunner().invoke(main, [*arguments, "-X", "ssl.crl.location=x"])
    assert ran.exit_code == 1
    assert "setting kafka.ssl.crl.location: Spark, " in ran.output


def test_a_secret_on_the_command_line_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    given("sasl.username=us", f"sasl.password={SECRET}", *LOGIN)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("caughtup: warning: sasl.password on the command line")
    assert "CAUGHTUP_KAFKA_SASL_PASSWORD" in line
    assert SECRET not in line


LOGIN = ("security.protocol=SASL_SSL", "sasl.mechanism=PLAIN")


def test_what_goes_unencrypted_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CAUGHTUP_KAFKA_SASL_PASSWORD", SECRET)
    given("sasl.username=us", "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("caughtup: warning: security.protocol is SASL_PLAINTEXT: ")
    given("sasl.username=us", *LOGIN)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("entry", [SECRET, f"sasl.password:{SECRET}"])
def test_an_option_that_is_not_name_and_value_is_not_repeated(entry: str) -> None:
    ran = CliRunner().invoke(main, ["lag", "-X", entry])
    assert ran.exit_code == 2
    assert "NAME=VALUE" in ran.output
    assert SECRET not in ran.output


def test_any_kind_of_value_reaches_the_client() -> None:
    written('[kafka]\n"socket.timeout.ms" = 100\n"enable.ssl.certificate.verification" = false')
    kafka: dict[str, Any] = load_settings().kafka
    assert kafka == {"socket.timeout.ms": 100, "enable.ssl.certificate.verification": False}


def test_of_every_property_the_last_place_that_has_it_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    source = random.Random(seed)
    names = ["client.id", "client.rack", "sasl.username", "sasl.password", "ssl.key.password"]
    for _ in range(200):
        places: list[dict[str, str]] = []
        expected: dict[str, str] = {}
        for number in range(4):
            place = {}
            for name in source.sample(names, source.randrange(len(names))):
                value = f"{name} of {number}"
                expected[name] = value
                if name.endswith("password") and source.random() < 0.5:
                    path = Path(f"{name}-{number}")
                    path.write_text(value)
                    place[f"{name}_file"] = str(path)
                else:
                    place[name] = value
            places.append(place)
        written("[kafka]\n" + "\n".join(f'"{n}" = {json.dumps(v)}' for n, v in places[0].items()))
        with monkeypatch.context() as environment:
            environment.setenv("CAUGHTUP_KAFKA", json.dumps(places[1]))
            for name, value in places[2].items():
                variable = f"CAUGHTUP_KAFKA_{name.upper().replace('.', '_')}"
                environment.setenv(variable, value)
            assert load_settings(kafka=places[3]).kafka == expected
