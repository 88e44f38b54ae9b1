"""The embedded cluster (real Apache Kafka) and the demo applications.

A checkout has it and a wheel hasn't: within a wheel, only the command line refers to it, and only
its command imports the command line. Benchmarks and tests import it.
"""
