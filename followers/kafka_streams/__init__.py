"""The follower for Kafka Streams: Java sources, and how to build the jar.

Imports demo.java; ``make follower``, benchmarks and tests import it.
"""
