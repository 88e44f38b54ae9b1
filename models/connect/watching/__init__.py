"""A Connect group watched: each generation decided again, and what follows from it.

Imports connect alone; connect_clusters and state import it.
"""
