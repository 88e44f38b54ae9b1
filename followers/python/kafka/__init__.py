"""A follower's reading and writing in the background, with aiokafka.

Imports models; ``followers.python`` imports it.
"""
