"""The state of a cluster, and the removal of deleted groups from it.

Imports everything in models; only the shell imports it.
"""
