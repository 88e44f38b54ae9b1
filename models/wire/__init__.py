"""Codecs of the records that Kafka, Kafka Streams and Connect write into ``__consumer_offsets``.

Imports errors, ids and offsets; groups, histories and all decoders of records import it.
"""
