"""Every benchmark, a command of ``caughtup bench`` each, but for ``codecs``.

Imports agents, pipelines and demo; the service never imports it.
"""
