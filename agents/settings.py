"""The settings: names, defaults, bounds and descriptions. agents/configuration/ loads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from caughtup.agents.application_settings import ApplicationConfig
from caughtup.agents.declared_settings import setting
from caughtup.agents.process.logs import LogFormat
from caughtup.agents.watching_settings import WatchingSettings, separated
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.topics import DEFAULT_PREFIX
from caughtup.models.watching import WatchPatterns

#: Without a path, and without a user name, which could come with a password.
_ENDPOINT = re.compile(r"https?://[^\s/@?#]+/?", re.ASCII)


def _is_endpoint(given: str) -> None:
    if not _ENDPOINT.fullmatch(given):
        raise ValueError("http://HOST:PORT or https://HOST:PORT is expected")


@dataclass(frozen=True, kw_only=True)
class StoreSettings:
    """The settings for S3, for checkpoints of Spark's queries and the history's tables."""

    s3_endpoint: str | None = setting(
        None,
        "The address of an S3 that isn't Amazon's, for checkpoints and the history's "
        "tables. What is not set here comes from AWS_ENDPOINT_URL, AWS_REGION and the like.",
        examples=["https://s3.example.com:9000"],
        check=_is_endpoint,
    )
    s3_region: str | None = setting(
        None, "The region of that S3.", min_length=1, examples=["eu-central-1"]
    )
    s3_access_key: str | None = setting(
        None, "The id of the access key for that S3.", min_length=1, examples=["AKIAEXAMPLE"]
    )
    s3_secret_key_file: Path | None = setting(
        None,
        "A file with the secret of the access key. It is read again when it changes.",
        examples=["/etc/caughtup/s3.secret"],
    )
    s3_session_token_file: Path | None = setting(
        None,
        "A file with the session token, if the access key is temporary. It "
        "is read again when it changes.",
        examples=["/etc/caughtup/s3.token"],
    )

    def contradictions(self) -> Iterator[str]:
        """Yield a line for each setting that another one rules out, or needs."""
        if (self.s3_access_key is None) != (self.s3_secret_key_file is None):
            yield "s3_access_key and s3_secret_key_file need each other"
        elif self.s3_session_token_file is not None and self.s3_access_key is None:
            yield "s3_session_token_file needs s3_access_key"


#: A host name or an IPv4 address, or an IPv6 address in brackets, with a port if that is not 9092.
_ADDRESS = re.compile(r"(?:[^\s:/\[\],]+|\[[0-9A-Fa-f:.%\w]+\])(?::([0-9]{1,5}))?")
#: A link; without a user name, which could come with a password.
_WEB_ADDRESS = re.compile(r"https?://[^\s/@\"<>\\]+(?:/[^\s\"<>\\]*)?", re.ASCII)


def _are_addresses(given: str) -> None:
    for address in given.split(","):
        found = _ADDRESS.fullmatch(address.strip())
        if found is None or not 1 <= int(found[1] or 9092) <= 65535:
            raise ValueError("HOST:PORT is expected, several separated by commas")


def _is_web_address(given: str) -> None:
    if not _WEB_ADDRESS.fullmatch(given):
        raise ValueError("an address that begins with http:// or https:// is expected")


def _are_topic_sets(given: tuple[str, ...]) -> None:
    if any(len(line.rsplit(":", 3)) != 4 or not all(line.rsplit(":", 3)) for line in given):
        raise ValueError("GROUP:CONFIG:STATUS:OFFSET is expected")


@dataclass(frozen=True, kw_only=True)
class Settings(StoreSettings, WatchingSettings):
    """All settings; each field's description says what it does.

    ``kafka`` has the present properties: secrets from files (``secret_files``, by property) are
    replaced in it when the files change.
    """

    bootstrap_servers: str = setting(
        "127.0.0.1:9092",
        "Where to find the cluster: HOST:PORT, several separated by commas.",
        check=_are_addresses,
    )
    cluster_name: str | None = setting(
        None,
        "A name for the cluster; the page, caughtup_cluster_info and alerts show it "
        "beside the cluster's id.",
        min_length=1,
        max_length=100,
        examples=["production, Frankfurt"],
    )
    web_host: str = setting(
        "127.0.0.1",
        "The address on which the page, /metrics and /ready listen; loopback by default.",
    )
    web_port: int = setting(8080, "The port on which they listen.", ge=0, le=65535)
    web_allowed_hosts: tuple[str, ...] = setting(
        (),
        "Host names that requests may use, in addition to addresses and this "
        "machine's own names; *: any.",
        examples=[["caughtup.example.com"]],
        read=separated,
    )
    web_address: str | None = setting(
        None,
        "The URL at which other instances that share the groups reach this one's page; "
        "by default its web_host, or its host's name if it listens everywhere, with web_port.",
        examples=["https://caughtup-0.caughtup:8080"],
        check=_is_web_address,
    )
    web_tls_certificate: Path | None = setting(
        None,
        "A PEM file with a certificate; with it and its key, the service speaks TLS. "
        "It is read again when it changes.",
        examples=["/etc/caughtup/tls.crt"],
    )
    web_tls_key: Path | None = setting(
        None, "The PEM file with the certificate's key.", examples=["/etc/caughtup/tls.key"]
    )
    web_token_file: Path | None = setting(
        None,
        "A file with the token that requests have to send, as a Bearer token or as a "
        "password. It is read again when it changes.",
        examples=["/etc/caughtup/web.token"],
    )
    grafana_url: str | None = setting(
        None,
        "A dashboard's address in Grafana: the page links to it, with the group.",
        examples=["https://grafana.example.com/d/caughtup"],
        check=_is_web_address,
    )
    docs_url: str | None = setting(
        None,
        "Where this project's documents are in a browser: the page links to them, and "
        "to the runbooks in operating.",
        examples=["https://docs.example.com/caughtup"],
        check=_is_web_address,
    )
    history_uri: str | None = setting(
        None,
        "Where the history's tables are: what `caughtup pipeline history` has as "
        "--output. With it, and the extra history, a group's page shows days, too.",
        min_length=1,
        max_length=2_000,
        examples=["s3://lake/history"],
    )
    application_id: str = setting(
        "caughtup",
        "The group in which the service's instances elect the active one, and the id "
        "of its clients.",
        min_length=1,
    )
    workers: Literal["active", "shared"] = setting(
        "active",
        "What instances with the same application_id do. active: one does all the work, "
        "the others stand by. shared: each has the groups of some partitions of "
        "__consumer_offsets.",
    )
    source: Literal["auto", "log", "ask"] = setting(
        "auto",
        "Where groups and their commits come from. log: the log of __consumer_offsets, "
        "which needs READ on it. ask: their coordinators, which needs DESCRIBE only. auto: the log "
        "if it may be read.",
    )
    ask_interval: float = setting(
        10.0,
        "Seconds in which every group is asked about once, if coordinators are asked; "
        "about share groups they always are.",
        ge=1,
        le=3_600,
    )
    own_topics: bool = setting(
        True,
        "Whether the service has topics of its own. false: it creates and reads none, "
        "joins no group and writes no records; recommendations are on the page and its API only, "
        "and there is one instance.",
    )
    state_file: Path | None = setting(
        None,
        "A file for what would be on the service's own topics, without them: what was "
        "recommended and learned survives a restart. It is of one process and one cluster.",
        examples=["/var/lib/caughtup/state.db"],
    )
    topic_prefix: str = setting(
        DEFAULT_PREFIX, "What the names of the service's own topics begin with."
    )
    topic_replication_factor: int = setting(
        -1, "The replication factor of the service's own topics; -1: the brokers' default.", ge=-1
    )
    end_offsets_interval: float = setting(1.0, "Seconds between two listings of end offsets.", gt=0)
    rebalance_interval: float = setting(
        0.05,
        "Seconds between two listings of the end offsets of a Streams application's "
        "changelogs while it rebalances, so that those that its leader got are known within narrow "
        "bounds; 0: none.",
        ge=0,
    )
    reassignments_interval: float = setting(
        2.0, "Seconds between two observations of reassignments.", gt=0
    )
    reassignment_budget: float | None = setting(
        None,
        "Seconds that a reassignment may still take before it is called slow; if it "
        "is not set, none is.",
        gt=0,
        examples=[3600.0],
    )
    lag_interval: float = setting(
        30.0,
        "Seconds between two writes of what changed in the lag table to caughtup-lag; 0: never.",
        ge=0,
    )
    connect_topics: tuple[str, ...] = setting(
        (),
        "Topics of Connect worker clusters that cannot be recognized by their names: "
        "GROUP:CONFIG:STATUS:OFFSET, which are the workers' group.id and *.storage.topic.",
        examples=[["connect-eu:eu-settings:eu-state:eu-positions"]],
        read=separated,
        check=_are_topic_sets,
    )
    signing_key_file: Path | None = setting(
        None,
        "A file of keys, of which the first signs recommendations; if it is not set, "
        "they are not signed.",
        examples=["/etc/caughtup/signing.keys"],
    )
    log_level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "How much is logged: debug, info, warning or error."
    )
    log_format: LogFormat = setting("text", "How a line of the log is written: text or json.")
    otlp_endpoint: str | None = setting(
        None,
        "Where metrics are sent over OTLP (HTTP, protobuf), with the path; needs the "
        "extra otlp. If it is not set, none are. OTEL_EXPORTER_OTLP_HEADERS and the like apply.",
        examples=["http://127.0.0.1:4318/v1/metrics"],
        check=_is_web_address,
    )
    otlp_interval: float = setting(60.0, "Seconds between two such sendings.", ge=1, le=86_400)
    kafka: dict[str, str | int | bool] = setting(
        {}, "Any librdkafka property; every client gets it in its own form.", shown=False
    )
    applications: dict[str, ApplicationConfig] = setting(
        {},
        "The configs of an application, by its id and under Kafka's names: the values "
        "that it runs with. What is not set is read or learned; `caughtup configs --toml` prints "
        "it.",
    )
    #: The files from which properties of ``kafka`` are read, by the property's name.
    secret_files: Mapping[str, Path] = field(default_factory=dict, repr=False)

    def contradictions(self) -> Iterator[str]:
        """Yield a line for each setting that another one rules out, or needs."""
        yield from StoreSettings.contradictions(self)
        yield from WatchingSettings.contradictions(self)
        if self.own_topics and self.state_file is not None:
            yield "state_file needs own_topics = false"
        if not self.own_topics and self.workers == "shared":
            yield "workers = shared needs own_topics = true"
        if self.web_tls_key is not None and self.web_tls_certificate is None:
            yield "web_tls_key needs web_tls_certificate"

    def links(self) -> dict[str, str]:
        """Return the addresses to which the page links, by name, if they are set."""
        docs = self.docs_url and self.docs_url.rstrip("/")
        runbooks = docs and f"{docs}/operating/"
        found = {"grafana": self.grafana_url, "docs": docs, "runbooks": runbooks}
        return {name: address for name, address in found.items() if address}

    def watching(self) -> WatchPatterns:
        """Return the patterns of watched groups and topics."""
        return self.patterns(self.application_id)

    def parameters(self) -> dict[str, ApplicationParameters]:
        """Return the applications' settings as the models' ApplicationParameters, by id."""
        return {name: one.parameters() for name, one in self.applications.items()}
