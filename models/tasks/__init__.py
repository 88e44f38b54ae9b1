"""Tasks of Kafka Streams: their changelogs, the ends of these, and the reported positions of
copies.

Imports models.histories; decisions and copies import it.
"""
