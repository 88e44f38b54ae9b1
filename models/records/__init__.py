"""The records of the service's own topics: what is in them, and how they are read.

Imports the values that records carry; reassignments, the shell, pipelines, followers and demo import
it.

One file for each record: its fields, each with its bounds, as a struct that writers fill in and
readers get, here and in ``agents/``, ``pipelines/`` and ``followers/``. ``topics`` names the
topics, ``fields`` and ``keys`` are what records have in common, and ``decoding`` is how every one
of them is decoded: bounded in size and depth before it is parsed, typed and versioned. Nothing
else of the core imports msgspec.

A record of another ``schema`` is refused: that is how a release says that older readers would
misread it. Whatever else a release adds is a field, and fields that a reader doesn't know are
passed over.
"""
