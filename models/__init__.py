"""The core: bytes and events in, values out. No I/O, no clock, no randomness.

Imports the standard library, numpy and, in ``records``, msgspec; everything else imports it.

The words used throughout are Kafka's own:

task            one partition of a subtopology; the unit that is assigned
client, process one Kafka Streams instance, identified by its process id
active          the copy of a task that processes records
standby         a copy that follows the changelog, so that it can take over
warm-up         a copy beyond ``num.standby.replicas``, built so that the task can move there
caught up       a copy whose lag is at most ``acceptable.recovery.lag``
probing rebalance  a rebalance held only to see whether warm-ups have caught up
log end offset  one past the last record of a partition, transaction markers included
last stable offset  the offset before which every transaction has ended
"""
