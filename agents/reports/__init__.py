"""Agents for what applications and jobs report on topics of ours.

Imports agents.topics; ``app`` and the command line import it.
"""
