"""The iteration orders of Java's collections, including those of equal elements.

Imports ids; Kafka's assignors import it.
"""
