"""Rack-aware assignment (KIP-925): the least traffic across racks, as a minimum-cost flow.

Imports models.assignment; assignors import it.
"""
