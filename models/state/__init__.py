"""The state of a cluster: all that the service knows of it, and the removal of what is gone.

Imports everything in models; only the shell imports it.
"""
