"""Standbys, spread by load or over client tags.

Imports models.assignment; the high availability assignor imports it.
"""
