"""Kafka's own assignors, reproduced exactly.

Imports assignors.java and the scenario; the registry imports it.
"""
