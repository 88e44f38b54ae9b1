"""Real Connect workers, each in its own process, and their group's decisions.

Imports cluster, java and processes; the story and tests import it.
"""
