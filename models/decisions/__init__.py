"""Decisions on generations of Kafka Streams groups: inputs, leaders' decisions, recommendations.

Imports assignors, groups, tasks and learning; copies, the state and the shell import it.
"""
