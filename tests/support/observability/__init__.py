"""Prometheus, Alertmanager, the web server and a scene, for tests of what operators see."""
