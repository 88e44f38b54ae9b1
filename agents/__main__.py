"""``python -m caughtup.agents`` is ``caughtup``."""

from caughtup.agents.main import program

program()
