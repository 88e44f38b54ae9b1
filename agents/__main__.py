"""``python -m caughtup.agents`` is ``caughtup``."""

from caughtup.agents.cli import main

main(prog_name="caughtup")
