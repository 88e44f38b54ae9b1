"""Real Connect workers, each a process of its own, and what their group decided.

Imports cluster, java and processes; the story and tests import it.
"""
