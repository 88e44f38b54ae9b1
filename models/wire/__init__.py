"""Codecs of what Kafka, Kafka Streams and Connect write into ``__consumer_offsets``.

Imports errors, ids and offsets; groups, histories and whoever decodes records import it.
"""
