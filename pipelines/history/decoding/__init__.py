"""Decode Kafka records to columns, a whole Arrow batch at a time.

Imports models; the history imports it.
"""
