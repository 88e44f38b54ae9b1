"""The embedded cluster (real Apache Kafka) and the demo applications.

Imports models; the command line, benchmarks, the Java follower's build and tests import it.
"""
