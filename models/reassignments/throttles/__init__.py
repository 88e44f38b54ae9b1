"""Replication throttles, and who shares what they let through.

Imports tracking; causes and the verdict import it.
"""
