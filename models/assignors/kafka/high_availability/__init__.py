"""HighAvailabilityTaskAssignor of Kafka 4.3.1.

Imports kafka.standbys and kafka.racks; the registry imports it.
"""
