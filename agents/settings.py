"""The settings: names, defaults, bounds and descriptions. agents/configuration/ loads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)

from caughtup.agents.application_settings import ApplicationConfig, parameters_of
from caughtup.agents.process.logs import LogFormat
from caughtup.agents.watching_settings import WatchingSettings, separated
from caughtup.models.parameters import ApplicationParameters
from caughtup.models.records.topics import DEFAULT_PREFIX
from caughtup.models.watching import WatchPatterns

#: Without a path, and without a user name, which could come with a password.
_ENDPOINT = re.compile(r"https?://[^\s/@?#]+/?", re.ASCII)


class StoreSettings(BaseModel):
    """The settings for S3, for checkpoints of Spark's queries and the history's tables."""

    s3_endpoint: str | None = Field(
        default=None,
        description="The address of an S3 that isn't Amazon's, for checkpoints and the history's "
        "tables. What is not set here comes from AWS_ENDPOINT_URL, AWS_REGION and the like.",
        examples=["https://s3.example.com:9000"],
    )
    s3_region: str | None = Field(
        default=None, min_length=1, description="The region of that S3.", examples=["eu-central-1"]
    )
    s3_access_key: str | None = Field(
        default=None,
        min_length=1,
        description="The id of the access key for that S3.",
        examples=["AKIAEXAMPLE"],
    )
    s3_secret_key_file: Path | None = Field(
        default=None,
        description="A file with the secret of the access key. It is read again when it changes.",
        examples=["/etc/caughtup/s3.secret"],
    )
    s3_session_token_file: Path | None = Field(
        default=None,
        description="A file with the session token, if the access key is temporary. It "
        "is read again when it changes.",
        examples=["/etc/caughtup/s3.token"],
    )

    @field_validator("s3_endpoint")
    @classmethod
    def _is_an_endpoint(cls, given: str | None) -> str | None:
        if given is not None and not _ENDPOINT.fullmatch(given):
            raise ValueError("http://HOST:PORT or https://HOST:PORT is expected")
        return given

    @model_validator(mode="after")
    def _has_both_keys(self) -> Self:
        if (self.s3_access_key is None) != (self.s3_secret_key_file is None):
            raise ValueError("s3_access_key and s3_secret_key_file need each other")
        if self.s3_session_token_file is not None and self.s3_access_key is None:
            raise ValueError("s3_session_token_file needs s3_access_key")
        return self


#: A host name or an IPv4 address, or an IPv6 address in brackets, with a port if that is not 9092.
_ADDRESS = re.compile(r"(?:[^\s:/\[\],]+|\[[0-9A-Fa-f:.%\w]+\])(?::([0-9]{1,5}))?")
#: A link; without a user name, which could come with a password.
_WEB_ADDRESS = re.compile(r"https?://[^\s/@\"<>\\]+(?:/[^\s\"<>\\]*)?", re.ASCII)


class Settings(StoreSettings, WatchingSettings):
    """All settings; each field's description says what it does.

    ``kafka`` has the present properties: secrets from files (``secret_files``, by property) are
    replaced in it when the files change.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,  # a password may be in it
    )

    bootstrap_servers: str = Field(
        default="127.0.0.1:9092",
        description="Where to find the cluster: HOST:PORT, several separated by commas.",
    )
    cluster_name: str | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description="A name for the cluster; the page, caughtup_cluster_info and alerts show it "
        "beside the cluster's id.",
        examples=["production, Frankfurt"],
    )
    web_host: str = Field(
        default="127.0.0.1",
        description="The address on which the page, /metrics and /ready listen; loopback by "
        "default.",
    )
    web_port: int = Field(
        default=8080, ge=0, le=65535, description="The port on which they listen."
    )
    web_allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(separated)] = Field(
        default=(),
        description="Host names that requests may use, in addition to addresses and this "
        "machine's own names; *: any.",
        examples=[["caughtup.example.com"]],
    )
    web_address: str | None = Field(
        default=None,
        description="The URL at which other instances that share the groups reach this one's page; "
        "by default its web_host, or its host's name if it listens everywhere, with web_port.",
        examples=["https://caughtup-0.caughtup:8080"],
    )
    web_tls_certificate: Path | None = Field(
        default=None,
        description="A PEM file with a certificate; with it and its key, the service speaks TLS. "
        "It is read again when it changes.",
        examples=["/etc/caughtup/tls.crt"],
    )
    web_tls_key: Path | None = Field(
        default=None,
        description="The PEM file with the certificate's key.",
        examples=["/etc/caughtup/tls.key"],
    )
    web_token_file: Path | None = Field(
        default=None,
        description="A file with the token that requests have to send, as a Bearer token or as a "
        "password. It is read again when it changes.",
        examples=["/etc/caughtup/web.token"],
    )
    grafana_url: str | None = Field(
        default=None,
        description="A dashboard's address in Grafana: the page links to it, with the group.",
        examples=["https://grafana.example.com/d/caughtup"],
    )
    docs_url: str | None = Field(
        default=None,
        description="Where this project's documents are in a browser: the page links to them, and "
        "to the runbooks in operating.",
        examples=["https://docs.example.com/caughtup"],
    )
    history_uri: str | None = Field(
        default=None,
        min_length=1,
        max_length=2_000,
        description="Where the history's tables are: what `caughtup pipeline history` has as "
        "--output. With it, and the extra history, a group's page shows days, too.",
        examples=["s3://lake/history"],
    )
    application_id: str = Field(
        default="caughtup",
        min_length=1,
        description="The group in which the service's instances elect the active one, and the id "
        "of its clients.",
    )
    workers: Literal["active", "shared"] = Field(
        default="active",
        description="What instances with the same application_id do. active: one does all the work, "
        "the others stand by. shared: each has the groups of some partitions of "
        "__consumer_offsets.",
    )
    source: Literal["auto", "log", "ask"] = Field(
        default="auto",
        description="Where groups and their commits come from. log: the log of __consumer_offsets, "
        "which needs READ on it. ask: their coordinators, which needs DESCRIBE only. auto: the log "
        "if it may be read.",
    )
    ask_interval: float = Field(
        default=10.0,
        ge=1,
        le=3_600,
        description="Seconds in which every group is asked about once, if coordinators are asked; "
        "about share groups they always are.",
    )
    own_topics: bool = Field(
        default=True,
        description="Whether the service has topics of its own. false: it creates and reads none, "
        "joins no group and writes no records; recommendations are on the page and its API only, "
        "and there is one instance.",
    )
    state_file: Path | None = Field(
        default=None,
        description="A file for what would be on the service's own topics, without them: what was "
        "recommended and learned survives a restart. It is of one process and one cluster.",
        examples=["/var/lib/caughtup/state.db"],
    )
    topic_prefix: str = Field(
        default=DEFAULT_PREFIX,
        description="What the names of the service's own topics begin with.",
    )
    topic_replication_factor: int = Field(
        default=-1,
        ge=-1,
        description="The replication factor of the service's own topics; -1: the brokers' default.",
    )
    end_offsets_interval: float = Field(
        default=1.0, gt=0, description="Seconds between two listings of end offsets."
    )
    rebalance_interval: float = Field(
        default=0.05,
        ge=0,
        description="Seconds between two listings of the end offsets of a Streams application's "
        "changelogs while it rebalances, so that those that its leader got are known within narrow "
        "bounds; 0: none.",
    )
    reassignments_interval: float = Field(
        default=2.0, gt=0, description="Seconds between two observations of reassignments."
    )
    reassignment_budget: float | None = Field(
        default=None,
        gt=0,
        description="Seconds that a reassignment may still take before it is called slow; if it "
        "is not set, none is.",
        examples=[3600.0],
    )
    lag_interval: float = Field(
        default=30.0,
        ge=0,
        description=(
            "Seconds between two writes of what changed in the lag table to caughtup-lag; 0: never."
        ),
    )
    connect_topics: Annotated[tuple[str, ...], BeforeValidator(separated)] = Field(
        default=(),
        description="Topics of Connect worker clusters that cannot be recognized by their names: "
        "GROUP:CONFIG:STATUS:OFFSET, which are the workers' group.id and *.storage.topic.",
        examples=[["connect-eu:eu-settings:eu-state:eu-positions"]],
    )
    signing_key_file: Path | None = Field(
        default=None,
        description="A file of keys, of which the first signs recommendations; if it is not set, "
        "they are not signed.",
        examples=["/etc/caughtup/signing.keys"],
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="How much is logged: debug, info, warning or error."
    )
    log_format: LogFormat = Field(
        default="text", description="How a line of the log is written: text or json."
    )
    otlp_endpoint: str | None = Field(
        default=None,
        description="Where metrics are sent over OTLP (HTTP, protobuf), with the path; needs the "
        "extra otlp. If it is not set, none are. OTEL_EXPORTER_OTLP_HEADERS and the like apply.",
        examples=["http://127.0.0.1:4318/v1/metrics"],
    )
    otlp_interval: float = Field(
        default=60.0, ge=1, le=86_400, description="Seconds between two such sendings."
    )
    kafka: dict[str, str | int | bool] = Field(
        default={},
        repr=False,
        description="Any librdkafka property; every client gets it in its own form.",
    )
    applications: dict[str, ApplicationConfig] = Field(  # type: ignore[valid-type]
        default={},
        description="The configs of an application, by its id and under Kafka's names: the values "
        "that it runs with. What is not set is read or learned; `caughtup configs --toml` prints "
        "it.",
    )
    _secret_files: Mapping[str, Path] = PrivateAttr(default={})

    @field_validator("bootstrap_servers")
    @classmethod
    def _are_addresses(cls, given: str) -> str:
        for address in given.split(","):
            found = _ADDRESS.fullmatch(address.strip())
            if found is None or not 1 <= int(found[1] or 9092) <= 65535:
                raise ValueError("HOST:PORT is expected, several separated by commas")
        return given

    @field_validator("grafana_url", "docs_url", "otlp_endpoint", "web_address")
    @classmethod
    def _are_web_addresses(cls, given: str | None) -> str | None:
        if given is not None and not _WEB_ADDRESS.fullmatch(given):
            raise ValueError("an address that begins with http:// or https:// is expected")
        return given

    @field_validator("connect_topics")
    @classmethod
    def _are_topic_sets(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if any(len(line.rsplit(":", 3)) != 4 or not all(line.rsplit(":", 3)) for line in given):
            raise ValueError("GROUP:CONFIG:STATUS:OFFSET is expected")
        return given

    @model_validator(mode="after")
    def _needs_own_topics(self) -> Self:
        if self.own_topics and self.state_file is not None:
            raise ValueError("state_file needs own_topics = false")
        if not self.own_topics and self.workers == "shared":
            raise ValueError("workers = shared needs own_topics = true")
        return self

    @model_validator(mode="after")
    def _has_certificate(self) -> Self:
        if self.web_tls_key is not None and self.web_tls_certificate is None:
            raise ValueError("web_tls_key needs web_tls_certificate")
        return self

    @property
    def secret_files(self) -> Mapping[str, Path]:
        """The files from which properties of ``kafka`` are read, by the property's name."""
        return self._secret_files

    def reading(self, files: Mapping[str, Path]) -> Self:
        """Set the files from which properties were read; return the settings."""
        self._secret_files = dict(files)
        return self

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
        return {name: parameters_of(one) for name, one in self.applications.items()}
