"""Every benchmark, a command of ``caughtup bench`` each.

Imports agents, pipelines and demo; the service never imports it.
"""
