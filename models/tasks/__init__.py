"""Tasks of Kafka Streams: their changelogs, the ends of these, positions reported of copies.

Imports models.histories; decisions and copies import it.
"""
