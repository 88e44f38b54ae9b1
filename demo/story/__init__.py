"""``caughtup demo``: what is done, what has to be seen, and how it is printed.

Imports apps and cluster; the command imports it.
"""
