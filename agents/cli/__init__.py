"""The commands, a file each, and what they print with.

Imports everything else in agents; only ``main``, ``submit`` and the benchmarks import it.
"""
