"""Generated fleets of consumer groups, by the protocol or as records.

Imports cluster; benchmarks and tests import it.
"""
