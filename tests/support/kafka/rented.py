"""What rented clusters refuse, as docs/rented.md has it, to be staged before a cluster of Kafka's.

No product was tried: each ``Rented`` is the set of refusals that the document's sentences state. What they
don't state is as on the cluster behind, or is left out where a product is no Kafka.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from confluent_kafka.admin import ResourceType

from caughtup.agents.kafka.protocol.requests import Key
from caughtup.models.wire.record_keys import CONSUMER_OFFSETS
from tests.support.documented import ROOT, blocks
from tests.support.kafka import rewriting_rules
from tests.support.kafka.acls import DESCRIBE, Allowed, hidden, topic
from tests.support.kafka.rewriting import Rule
from tests.support.kafka.rewriting_rules import Versions
from tests.support.kafka.secured import FENCE, GROUP, OFFSETS, SERVICE_TOPICS

DOCUMENT = ROOT / "docs" / "rented.md"
#: What the commands of "Which permissions, with DESCRIBE alone?" allow.
DESCRIBE_ALONE = (
    Allowed(ResourceType.GROUP, "*", (DESCRIBE,)),
    topic("*", DESCRIBE),
    Allowed(ResourceType.BROKER, "kafka-cluster", (DESCRIBE,)),
)
#: What own topics need beside that.
OWN_TOPICS = (GROUP, SERVICE_TOPICS, FENCE)
#: Kafka's error code of what a principal may not do to the cluster.
CLUSTER_AUTHORIZATION_FAILED = 31

#: The API keys of requests that caughtup's own code doesn't make.
_OTHER_KEYS = {
    "Produce": 0,
    "OffsetCommit": 8,
    "SaslHandshake": 17,
    "CreateTopics": 19,
    "DeleteTopics": 20,
    "AddPartitionsToTxn": 24,
    "AddOffsetsToTxn": 25,
    "TxnOffsetCommit": 28,
    "AlterConfigs": 33,
    "SaslAuthenticate": 36,
    "CreatePartitions": 37,
    "DeleteGroups": 42,
    "OffsetDelete": 47,
}
_KEYS = {key.request: int(key) for key in Key} | _OTHER_KEYS
_ALL: Versions = (0, 0x7FFF)
#: What a client needs to be let in, which lists of requests leave out.
_LOGIN = "ApiVersions SaslHandshake SaslAuthenticate"


@dataclass(frozen=True)
class Rented:
    """A product: its heading in the document, the sentences that state its refusals, and these.

    ``versions``: of some requests; None for none. ``offers``: the names of all requests that it has;
    empty if it has all others, too. ``refused``: requests that are answered with an error.
    ``lists_without_members``: whether classic groups without members are listed and described.
    ``untold``: what the page says of reassignments; ``listed``: whether they are listed at all.
    ``holder``: what the page says of the holder of an open transaction; empty if it isn't looked for.
    """

    heading: str
    says: tuple[str, ...]
    rights: tuple[Allowed, ...] = DESCRIBE_ALONE
    versions: Mapping[str, Versions] = field(default_factory=lambda: MappingProxyType({}))
    offers: str = ""
    refused: Mapping[Key, int] = field(default_factory=lambda: MappingProxyType({}))
    one_address: bool = False
    has_consumer_groups: bool = True
    lists_without_members: bool = True
    source: str = "ask"
    listed: bool = True
    untold: tuple[str, ...] = ()
    holder: str = "missing: READ on the topic"

    @property
    def user(self) -> str:
        """The name of the principal that a service logs in as."""
        return re.sub(r"\W+", "-", self.heading).strip("-").lower()

    def rules(self, hidden_groups: tuple[str, ...]) -> list[Rule]:
        """Return how answers are rewritten; the groups are those that the product can't have."""
        limits: dict[int, Versions] = {_KEYS[name]: one for name, one in self.versions.items()}
        for name in f"{self.offers} {_LOGIN}".split() if self.offers else ():
            limits.setdefault(_KEYS[name], _ALL)
        rules = [rewriting_rules.offering(limits, others=not self.offers)]
        if hidden_groups and not self.has_consumer_groups:
            rules.append(rewriting_rules.without_groups(*hidden_groups))
        if not self.lists_without_members:
            rules.append(rewriting_rules.dead_without_members())
        rules += [rewriting_rules.refused(key, code) for key, code in self.refused.items()]
        return rules

    def settings(self, directory: Path) -> dict[str, Any]:
        """Return the settings that the document has for it, without logins and addresses.

        ``directory``: where the state file is instead.
        """
        (block,) = blocks("toml", self.section)
        settings = tomllib.loads(block)
        del settings["bootstrap_servers"], settings["kafka"]
        if "state_file" in settings:
            settings["state_file"] = str(directory / f"{self.user}-state.db")
        return settings

    @property
    def section(self) -> str:
        """The document's section about it."""
        return sections()[self.heading]


@cache
def sections() -> dict[str, str]:
    """Return the sections of the document about products, by heading."""
    _, _, products = DOCUMENT.read_text().partition("\n## Products\n")
    parts = re.split(r"^### (.+)\n", products, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


_NO_QUORUM = "the controllers' quorum: the broker does not support DescribeQuorum"
_NO_REASSIGNMENTS = "partitions in movement: the broker does not support ListPartitionReassignments"
_NO_PRODUCERS = "the broker does not support DescribeProducers"

MSK = Rented(
    "Amazon MSK, provisioned",
    says=(
        "DESCRIBE on the cluster",
        "to read the log: READ on it",
        "own topics",
        "optional: DESCRIBE_CONFIGS",
    ),
    rights=(*DESCRIBE_ALONE, OFFSETS, *OWN_TOPICS),
    source="log",
)
MSK_SERVERLESS = Rented(
    "Amazon MSK Serverless",
    says=(
        "ListGroups 2 to 4, DescribeGroups 2 to 5, OffsetFetch 5 to 7, FindCoordinator 2 to 3, Metadata 7 to 11, ListOffsets 5 to 6, Fetch 10 to 12",
        "DescribeLogDirs isn't offered",
        "`DescribeClusterDynamicConfiguration` doesn't",
    ),
    versions={
        "ListGroups": (2, 4),
        "DescribeGroups": (2, 5),
        "OffsetFetch": (5, 7),
        "FindCoordinator": (2, 3),
        "Metadata": (7, 11),
        "ListOffsets": (5, 6),
        "Fetch": (10, 12),
        "DescribeLogDirs": None,
        "AlterPartitionReassignments": None,
        # KIP-848 and what came later isn't in the list of 2022.
        "ConsumerGroupDescribe": None,
        "StreamsGroupDescribe": None,
        "ShareGroupDescribe": None,
        "DescribeShareGroupOffsets": None,
        "DescribeTopicPartitions": None,
        "ListConfigResources": None,
    },
    has_consumer_groups=False,
    untold=("throttles of broker 1: missing: DESCRIBE_CONFIGS on the cluster",),
)
CONFLUENT = Rented(
    "Confluent Cloud",
    says=(
        "`__consumer_offsets` can't be reached",
        "DescribeLogDirs and DescribeQuorum are refused",
    ),
    rights=(*DESCRIBE_ALONE, hidden(CONSUMER_OFFSETS)),
    refused={
        Key.DESCRIBE_LOG_DIRS: CLUSTER_AUTHORIZATION_FAILED,
        Key.DESCRIBE_QUORUM: CLUSTER_AUTHORIZATION_FAILED,
    },
    untold=("the controllers' quorum: missing: DESCRIBE on the cluster",),
)
AIVEN = Rented(
    "Aiven for Apache Kafka",
    says=(
        "--operation Describe --topic '*'",
        "Not known: whether a user may read `__consumer_offsets`",
    ),
    rights=(*DESCRIBE_ALONE, *OWN_TOPICS),
)
REDPANDA = Rented(
    "Redpanda",
    says=(
        "ListGroups up to version 4, DescribeGroups up to 5, and OffsetFetch up to 7",
        "ListPartitionReassignments, DescribeLogDirs 2 and DescribeProducers are there",
        "ConsumerGroupDescribe (KIP-848) and StreamsGroupDescribe (KIP-1071) aren't",
        "DescribeQuorum isn't",
    ),
    rights=(*DESCRIBE_ALONE, *OWN_TOPICS),
    versions={"ListGroups": 4, "DescribeGroups": 5, "OffsetFetch": 7, "DescribeLogDirs": 2},
    # The handlers of the sources that the section links to.
    offers=(
        "Produce Fetch ListOffsets Metadata OffsetFetch OffsetDelete FindCoordinator ListGroups "
        "ApiVersions JoinGroup Heartbeat LeaveGroup SyncGroup CreateTopics OffsetCommit "
        "DescribeConfigs AlterConfigs DeleteTopics DescribeGroups DeleteGroups DescribeLogDirs "
        "InitProducerId AddPartitionsToTxn TxnOffsetCommit AddOffsetsToTxn EndTxn CreatePartitions "
        "OffsetForLeaderEpoch AlterPartitionReassignments ListPartitionReassignments "
        "DescribeProducers DescribeTransactions ListTransactions"
    ),
    has_consumer_groups=False,
    untold=(_NO_QUORUM,),
)
EVENT_HUBS = Rented(
    "Azure Event Hubs' Kafka endpoint",
    says=(
        "**One address** stands for all brokers",
        "**Groups without members vanish**",
        "Metadata up to version 9 and OffsetFetch up to 8 in 2026",
        "There is nothing about brokers, replicas and reassignments to see",
    ),
    versions={"Metadata": 9, "OffsetFetch": 8, "ListGroups": 4, "DescribeGroups": 5},
    # Those of 2019, of the issue that the section links to. Two of them in the versions that caughtup
    # needs, which aren't known to be offered; test_rented.py has older ones, too.
    offers=(
        "Produce Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator JoinGroup "
        "Heartbeat LeaveGroup SyncGroup DescribeGroups ListGroups CreateTopics DeleteTopics"
    ),
    one_address=True,
    has_consumer_groups=False,
    lists_without_members=False,
    listed=False,
    untold=(_NO_REASSIGNMENTS, _NO_QUORUM),
    holder="",  # the group that is held back has no members, so that it isn't listed
)
WARPSTREAM = Rented(
    "WarpStream",
    says=(
        "**No offsets topic**",
        "ListPartitionReassignments has no meaning there",
        "DescribeLogDirs, DescribeProducers, ConsumerGroupDescribe (KIP-848) and StreamsGroupDescribe (KIP-1071) aren't listed",
    ),
    rights=(*DESCRIBE_ALONE, hidden(CONSUMER_OFFSETS)),
    # The list of the page that the section links to.
    offers=(
        "Produce InitProducerId Fetch ListOffsets Metadata OffsetCommit OffsetFetch FindCoordinator "
        "JoinGroup Heartbeat SyncGroup OffsetDelete CreateTopics DeleteTopics ListGroups "
        "AlterConfigs DescribeConfigs DescribeCluster DescribeGroups DeleteGroups LeaveGroup "
        "CreatePartitions AddPartitionsToTxn AddOffsetsToTxn EndTxn TxnOffsetCommit "
        "DescribeTransactions ListTransactions"
    ),
    has_consumer_groups=False,
    listed=False,
    untold=(_NO_REASSIGNMENTS, _NO_QUORUM),
    holder=_NO_PRODUCERS,
)
#: Those that one broker can stage: the settings of the other ask for three.
ON_ONE_BROKER = (MSK_SERVERLESS, CONFLUENT, AIVEN, REDPANDA, EVENT_HUBS, WARPSTREAM)
