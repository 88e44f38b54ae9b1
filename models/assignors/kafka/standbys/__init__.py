"""The assignment of standbys, by load or spread over client tags.

Imports models.assignment; the high availability assignor imports it.
"""
