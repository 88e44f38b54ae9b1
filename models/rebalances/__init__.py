"""Rebalances of groups: what caused each, how sure that is, what it cost, and storms of them.

Imports models.groups and models.commits; the cluster's state compares every generation with these.
"""
