"""A Kafka Connect group in virtual time: its workers, their delay, and who runs what meanwhile.

Imports models/connect; commands and tests import it.
"""
