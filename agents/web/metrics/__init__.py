"""``/metrics``: every series, read from the state when it is scraped.

Imports models; only agents.web imports it.
"""
