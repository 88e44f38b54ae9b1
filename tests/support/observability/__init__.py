"""Prometheus, Alertmanager, the web server and a scene to look at, for tests of what operators see."""
