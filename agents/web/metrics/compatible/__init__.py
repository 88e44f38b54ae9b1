"""Lag under the names of other exporters, with their labels, for dashboards that have them.

Imports the metrics beside it; the web server imports it.
"""
