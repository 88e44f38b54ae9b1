"""Grafana's dashboards, built with Grafana's own SDK: ``make dashboards`` writes their JSON.

Only its tests import it. It imports the SDK, which no installation has.
"""
