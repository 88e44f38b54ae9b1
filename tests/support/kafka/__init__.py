"""Readers of a real cluster, and what runs beside it during a test."""
