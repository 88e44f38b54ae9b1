"""Quotas of clients by their ids, which the admin client of Python doesn't set: through a JVM's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Brokers measure a client's quota over a second, so that no burst of many seconds is let through.
BROKER = {"quota.window.num": "2", "quota.window.size.seconds": "1"}


def limit_reading(java: Any, bootstrap_servers: str, bytes_per_second: Mapping[str, float]) -> None:
    """Set what each client may read a second, by its client id; ``java`` is a py4j gateway's JVM."""
    config = java.java.util.Properties()
    config.setProperty("bootstrap.servers", bootstrap_servers)
    admin = java.org.apache.kafka.clients.admin.Admin.create(config)
    quota = java.org.apache.kafka.common.quota
    changes = java.java.util.ArrayList()
    for client, rate in sorted(bytes_per_second.items()):
        entity = java.java.util.HashMap()
        entity.put("client-id", client)
        operations = java.java.util.ArrayList()
        operations.add(quota.ClientQuotaAlteration.Op("consumer_byte_rate", float(round(rate))))
        changes.add(quota.ClientQuotaAlteration(quota.ClientQuotaEntity(entity), operations))
    admin.alterClientQuotas(changes).all().get()
    admin.close()
