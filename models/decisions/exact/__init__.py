"""Exact mode: leaders' decisions made again, by Kafka's assignors or by a follower's rules.

Imports decisions.inputs and the assignors; learning and the rest of decisions import it.
"""
