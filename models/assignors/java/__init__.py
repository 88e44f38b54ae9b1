"""The orders in which Java's collections give their elements, ties included.

Imports ids; Kafka's assignors import it.
"""
