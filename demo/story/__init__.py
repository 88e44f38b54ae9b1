"""``caughtup demo``: the acts, the checks, and the output.

Imports apps and cluster; the command imports it.
"""
