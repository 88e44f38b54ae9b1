"""Metrics over OpenTelemetry's protocol (OTLP), of the same declarations as ``/metrics``.

Imports agents.web.metrics; ``app`` imports it, if an endpoint is set.
"""
