"""``python -m caughtup.agents`` is ``caughtup``."""

from caughtup.agents.main import main

main(prog_name="caughtup")
