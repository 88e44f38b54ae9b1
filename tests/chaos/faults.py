"""Every kind of fault by its name, and what inflicts it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.chaos import broker_faults, service_faults
from tests.chaos.scene import Scene
from tests.chaos.schedule import Fault

Inflict = Callable[[Scene, Fault], AbstractContextManager[None]]

INFLICT: dict[str, Inflict] = {
    "broker killed": broker_faults.broker_killed,
    "broker suspended": broker_faults.broker_suspended,
    "coordinator killed": broker_faults.coordinator_killed,
    "all brokers down": broker_faults.all_brokers_down,
    "unclean election": broker_faults.unclean_election,
    "offsets log moved": broker_faults.offsets_log_moved,
    "throttled reassignment": broker_faults.throttled_reassignment,
    "half-open network": broker_faults.half_open_network,
    "half-open to one broker": broker_faults.half_open_to_one,
    "service killed": service_faults.service_killed,
    "service suspended": service_faults.service_suspended,
    "second instance": service_faults.second_instance,
    "hand-over": service_faults.hand_over,
    "own topic deleted": service_faults.own_topic_deleted,
    "poison": service_faults.poison,
    "hostile member": service_faults.hostile_member,
    "instance ended": service_faults.instance_ended,
    "instance cut off": service_faults.instance_cut_off,
    "all instances killed": service_faults.all_instances_killed,
}
