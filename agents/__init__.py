"""The shell: everything that awaits. ``app`` puts it together, the files beside it are the agents.

Imports models; the command line imports pipelines, demo and bench, when they are called.
"""
