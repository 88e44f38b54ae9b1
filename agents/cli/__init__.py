"""The commands, and what they share: options, columns, a service's client, snapshots of a cluster.

Imports everything else in agents; only ``main``, ``submit`` and the benchmarks import it.
"""
