"""What is observed of a cluster where little is to be said of it."""

from __future__ import annotations

from caughtup.models.ids import TopicPartition
from caughtup.models.reassignments.tracking.observation import (
    BrokerObservation,
    ClusterObservation,
    PartitionObservation,
    TopicThrottle,
)

#: Brokers 3 and 4 are to take the partition over from 2; 1 stays.
MOVING = PartitionObservation(
    partition=TopicPartition("orders", 0),
    replicas=(3, 4, 1, 2),
    adding=(3, 4),
    removing=(2,),
    isr=(1, 2),
    leader=1,
    as_of_ms=1_000,
)
#: A partition whose topic is throttled, on brokers that are.
EVENTS = TopicPartition("events", 3)
THROTTLED = ClusterObservation(
    0,
    {
        1: BrokerObservation(leader_rate=1_000),
        2: BrokerObservation(follower_rate=2_000),
        3: BrokerObservation(),
    },
    throttles={EVENTS.topic: TopicThrottle("3:1,4:2", "3:2,3:3")},
)
