"""Rack-aware assignment (KIP-925): least traffic across racks, as a flow of least cost.

Imports models.assignment; assignors import it.
"""
