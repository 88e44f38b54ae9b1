"""A Kafka Streams application in virtual time: instances, threads, and the restoration of states.

Imports assignors and partition_assignor; commands and tests import it.
"""
