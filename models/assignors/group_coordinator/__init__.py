"""Assignors that brokers run: uniform and range of consumer groups, sticky of streams groups.

Imports java; simulation imports it.
"""
