"""Codecs of what Kafka and Kafka Streams write into ``__consumer_offsets``."""
