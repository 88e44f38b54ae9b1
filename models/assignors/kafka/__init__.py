"""Kafka's own assignors, reproduced exactly.

Imports assignors.java and models.assignment; the registry imports it.
"""
