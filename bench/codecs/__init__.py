"""``python -m caughtup.bench.codecs``: kafka-python's codecs beside ours, on large answers.

Imports agents and models; nothing imports it.
"""
