"""Limits of the web port: on connections, on costly requests, and the counts of refusals.

Imports agents.process; only agents.web imports it.
"""
