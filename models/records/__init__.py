"""The records of the service's own topics: their fields and bounds, and how they are decoded.

Imports the values that records carry; reassignments, the shell, pipelines, followers and demo import
it.

Each topic has a file with its record as a struct, which writers fill in and readers get, here and
in ``agents/``, ``pipelines/`` and ``followers/``. ``topics`` has the names of the topics, ``fields``
and ``keys`` have what records share, and ``decoding`` decodes them: bounded in size and depth
before they are parsed, typed and versioned. No other models import msgspec.

A record of an unknown ``schema`` is refused: a release writes another one if older readers would
misread the record. Otherwise releases only add fields, and readers ignore unknown fields.
"""
