"""``caughtup bench offsets``: the reader against the raw client.

Imports agents.kafka and demo; other benchmarks share its log, and import it.
"""
