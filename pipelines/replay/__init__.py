"""Replay on Spark: recorded generations under many settings.

Imports generations; the command line imports it.
"""
