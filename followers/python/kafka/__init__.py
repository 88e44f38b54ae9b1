"""A follower's own reading and writing, in the background, by aiokafka.

Imports models; ``followers.python`` imports it.
"""
