"""A cluster with TLS, SASL and ACLs, a user without each right, and commands."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AdminClient,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from caughtup.demo.cluster.broker_config import Security, Tls
from caughtup.demo.cluster.cluster import EmbeddedCluster
from tests.support.kafka.acls import CREATE, DESCRIBE, READ, WRITE, Allowed, allow, prefixed, topic
from tests.support.kafka.topics import words_read
from tests.support.service import Ran, caughtup, settings_file

PASSWORD = 'a "quoted" pässwörd \\ of'
COMMANDS = (["lag"], ["reassignments"], ["check"], ["run", "--web-port", "0"])
#: The prefix of every application id and topic of these services.
OWN = "caughtup"

OFFSETS = topic("__consumer_offsets", READ)
GROUP = prefixed(ResourceType.GROUP, OWN, READ)
SERVICE_TOPICS = prefixed(ResourceType.TOPIC, OWN, CREATE, READ, WRITE)
#: Without this right, late records of an instance that was replaced are not refused.
FENCE = prefixed(ResourceType.TRANSACTIONAL_ID, OWN, WRITE)
#: Without this right, the end offsets, and so the lag, of groups on these topics are unknown.
TOPICS = topic("*", DESCRIBE)
#: Without this right, reassignments are unknown.
CLUSTER = Allowed(ResourceType.BROKER, "kafka-cluster", (DESCRIBE,))
FEWEST = (OFFSETS, GROUP, SERVICE_TOPICS, FENCE, TOPICS, CLUSTER)

#: User → the rights of the minimal set that it lacks.
LACKING = {
    "nothing": (),
    "everything": FEWEST,
    "offsets": (OFFSETS,),
    "group": (GROUP,),
    "fence": (FENCE,),
    "topics": (TOPICS,),
    "cluster": (CLUSTER,),
    "write": (SERVICE_TOPICS,),
    "create": (SERVICE_TOPICS,),
    "scram": (),
}
INSTEAD = {
    "write": prefixed(ResourceType.TOPIC, OWN, CREATE, READ),
    "create": prefixed(ResourceType.TOPIC, OWN, READ, WRITE),
}


@contextmanager
def secured_cluster(tls: Tls) -> Iterator[EmbeddedCluster]:
    """Start a cluster with TLS, passwords, an authorizer, these users, and a commit at 4 of 10."""
    users = {name: f"{PASSWORD} {name}" for name in ("admin", *LACKING)}
    security = Security("sasl_ssl", users, authorizer=True, tls=tls)
    scram = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.client.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }
    with EmbeddedCluster(security=security, broker_properties=scram) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.internal_bootstrap_servers})
        for user, lack in LACKING.items():
            instead = [INSTEAD[user]] if user in INSTEAD else []
            rights = (*(set(FEWEST) - set(lack)), *instead)
            if rights:
                allow(admin, user, *rights)
        credential = UserScramCredentialUpsertion(
            "scram",
            ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096),
            users["scram"].encode(),
        )
        for altered in admin.alter_user_scram_credentials([credential]).values():
            altered.result(30)
        words_read(cluster, 10, 4)
        yield cluster


def run(
    secure: EmbeddedCluster, directory: Path, user: str, command: list[str], **properties: str
) -> Ran:
    """Run a command as a user; ``properties`` with ``_`` for ``.`` are added to its settings."""
    kafka = secure.security.client_config(user)
    kafka |= {name.replace("_", "."): value for name, value in properties.items()}
    path = settings_file(directory, secure.bootstrap_servers, kafka)
    ran = caughtup(*command, "--config", path, directory=directory)
    assert PASSWORD not in ran.out + ran.err
    return ran


def run_all(secure: EmbeddedCluster, directory: Path, **properties: str) -> list[Ran]:
    """Run every command at the same time as the user with the fewest ACLs."""
    with ThreadPoolExecutor() as threads:
        running = [
            threads.submit(run, secure, directory, "nothing", command, **properties)
            for command in COMMANDS
        ]
        return [ran.result() for ran in running]
