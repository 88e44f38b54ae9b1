"""Asking a service that runs, by its web side, instead of the cluster.

Imports web for what a Host is; commands import it.
"""
