"""The follower for Kafka Streams: Java sources, and what makes a jar of them.

Imports demo.java; ``make follower``, benchmarks and tests import it.
"""
