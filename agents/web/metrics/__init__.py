"""``/metrics``: every series, made from the state on each scrape.

Imports models; only agents.web imports it.
"""
