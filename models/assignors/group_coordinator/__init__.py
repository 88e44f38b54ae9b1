"""Assignors that run in brokers: uniform and range of consumer groups, sticky of streams groups.

Imports java; simulation imports it.
"""
