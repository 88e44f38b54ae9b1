"""All that is known of a cluster, and what is to be forgotten of it.

Imports everything in models; only the shell imports it.
"""
