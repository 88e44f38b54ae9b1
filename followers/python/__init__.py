"""The follower for Python applications, independent of the client library.

Imports models; ``followers.aiokafka`` and ``followers.faust`` import it.
"""
