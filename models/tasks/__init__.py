"""Tasks of Kafka Streams: their changelogs, the ends of these, and reported positions.

Imports models.histories; decisions and copies import it.
"""
