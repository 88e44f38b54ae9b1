"""Lag under the metric names and labels of other exporters, for existing dashboards.

Imports the metrics beside it; the web server imports it.
"""
