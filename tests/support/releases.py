"""Published releases of Kafka Streams, from the oldest modelled one on, and of brokers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from caughtup.models.assignment.configs import Release
from caughtup.pipelines.java.jars import ensure_jars, fetch_jars

#: Release → the family of releases that decides alike.
RELEASES: Mapping[str, Release] = {
    "2.8.2": Release.V2_8,
    "3.1.2": Release.V3_0,
    "3.2.3": Release.V3_2,
    "3.3.2": Release.V3_3,
    "3.6.2": Release.V3_5_2,
    "3.9.1": Release.V3_7,
    "4.0.0": Release.V3_7,
    "4.1.1": Release.V3_7,
}
#: Compression and RocksDB libraries, which tests of decisions don't need.
_COMPRESSION = ("com.github.luben", "org.lz4", "org.xerial.snappy")
_STORES = "org.rocksdb"


def release_jars(version: str, *, runs: bool = False) -> list[Path]:
    """Return a release's jars, fetching them first; ``runs`` adds 60 MB to run applications.

    Raises JarsUnavailable or JavaMissing.
    """
    without = _COMPRESSION if runs else (*_COMPRESSION, _STORES)
    wanted = [f"org.apache.kafka:kafka-streams:{version}", "org.slf4j:slf4j-nop:1.7.36"]
    name = f"streams-{version}" if runs else f"streams-{version}-decides"
    return sorted(fetch_jars(name, wanted, without).glob("*.jar"))


def release_classpath(version: str, *, runs: bool = False) -> str:
    """Return the class path of ``release_jars``, with a Jackson that the oracles support."""
    jackson = ensure_jars().glob("jackson-*.jar")
    own = (jar for jar in release_jars(version, runs=runs) if not jar.name.startswith("jackson-"))
    return os.pathsep.join(map(str, (*sorted(jackson), *own)))


def broker_classpath(version: str) -> str:
    """Return the class path of a release's brokers, fetching 100 MB of jars first.

    Raises JarsUnavailable or JavaMissing.
    """
    wanted = [f"org.apache.kafka:{name}:{version}" for name in ("kafka_2.13", "kafka-clients")]
    if version.startswith("3."):  # comes with log4j 1
        wanted.append("org.slf4j:slf4j-simple:1.7.36")
        without: tuple[str, ...] = ("ch.qos.reload4j", "org.slf4j:slf4j-reload4j")
    else:
        wanted.append("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4")
        without = ()
    jars = fetch_jars(f"brokers-{version}", wanted, without).glob("*.jar")
    return os.pathsep.join(map(str, sorted(jars)))
