"""A Kafka Streams application in virtual time: instances, threads, states and their restoring.

Imports assignors and partition_assignor; commands and tests import it.
"""
