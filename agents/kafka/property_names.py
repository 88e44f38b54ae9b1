"""The names of librdkafka's properties that are not about security, to suggest the right spelling.

A test compares them with the installed library's own list.
"""

from __future__ import annotations

from caughtup.models.security.kafka_names import names

OTHER_PROPERTIES = names(
    """
    acks allow.auto.create.topics api.version.fallback.ms api.version.request
    api.version.request.timeout.ms auto.commit.enable auto.commit.interval.ms auto.offset.reset
    batch.num.messages batch.size bootstrap.servers broker.address.family broker.address.ttl
    broker.version.fallback builtin.features check.crcs client.dns.lookup client.id client.rack
    compression.codec compression.level compression.type connections.max.idle.ms
    consume.callback.max.messages coordinator.query.interval.ms debug
    delivery.report.only.error delivery.timeout.ms enable.auto.commit enable.auto.offset.store
    enable.gapless.guarantee enable.idempotence enable.metrics.push enable.partition.eof
    enable.random.seed enabled_events fetch.error.backoff.ms fetch.max.bytes
    fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id
    group.instance.id group.protocol group.protocol.type group.remote.assignor
    heartbeat.interval.ms internal.termination.signal isolation.level linger.ms
    log.connection.close log.queue log.thread.name log_level max.in.flight
    max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
    max.poll.records message.copy.max.bytes message.max.bytes message.send.max.retries
    message.timeout.ms metadata.broker.list metadata.max.age.ms
    metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy offset.store.method
    offset.store.path offset.store.sync.interval.ms partition.assignment.strategy partitioner
    plugin.library.paths produce.offset.report queue.buffering.backpressure.threshold
    queue.buffering.max.kbytes queue.buffering.max.messages queue.buffering.max.ms
    queued.max.messages.kbytes queued.min.messages queuing.strategy receive.message.max.bytes
    reconnect.backoff.jitter.ms reconnect.backoff.max.ms reconnect.backoff.ms
    request.required.acks request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms
    session.timeout.ms share.acknowledgement.mode socket.blocking.max.ms
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    statistics.interval.ms sticky.partitioning.linger.ms topic.blacklist
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.cnt
    topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.interval.ms
    topic.metadata.refresh.sparse transaction.timeout.ms transactional.id
    """
)
