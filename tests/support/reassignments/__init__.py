"""Observations of reassigned partitions, and a cluster of them."""
