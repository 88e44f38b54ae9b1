"""The embedded cluster (real Apache Kafka) and the demo applications.

A checkout has it and a wheel hasn't: of what a wheel holds, only the command line names it, and only
its command imports the command line. Benchmarks and tests import it.
"""
