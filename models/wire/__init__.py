"""Codecs of what Kafka and Kafka Streams write into ``__consumer_offsets``.

Imports errors, ids and offsets; groups, histories and whoever decodes records import it.
"""
