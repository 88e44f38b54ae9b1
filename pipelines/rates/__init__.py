"""``caughtup pipeline rates``: catch-up rates over windows, back to Kafka.

Imports spark and progress; the command line imports it.
"""
