"""Chaos and soak: the service as a process on a live cluster, held against the truth for long.

``make chaos`` and ``make soak`` run what is here; its pure parts have tests in this folder. Imports
agents, bench, demo and the other tests' support; nothing imports it.
"""
