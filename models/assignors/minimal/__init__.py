"""The recommendation: the fewest movements within Kafka's bounds.

Imports the scenario and kafka.racks; the registry imports it.
"""
