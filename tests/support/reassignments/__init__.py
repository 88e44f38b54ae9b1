"""Partitions that are reassigned: what is observed of them, and a cluster full of them."""
