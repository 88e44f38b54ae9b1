"""Records of a Connect worker cluster's own topics, which its workers write.

Imports records' decoding and ids; connect_clusters and agents.connect import it.
"""
