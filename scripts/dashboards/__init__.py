"""Grafana's dashboards, made of Python by Grafana's own SDK: ``make dashboards`` writes their JSON.

Nothing imports it but its tests; it imports the SDK, which no installation has.
"""
