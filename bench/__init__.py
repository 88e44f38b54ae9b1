"""The benchmarks: commands of ``caughtup bench``, except ``codecs``.

Imports agents, pipelines and demo; the service never imports it.
"""
