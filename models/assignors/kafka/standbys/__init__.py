"""Standbys, spread by load or over client tags.

Imports the scenario; the high availability assignor imports it.
"""
