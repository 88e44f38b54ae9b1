"""``python -m caughtup.bench.codecs``: compare kafka-python's codecs with ours on large answers.

Imports agents and models; nothing imports it.
"""
