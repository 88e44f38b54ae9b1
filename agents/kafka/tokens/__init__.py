"""Tokens for SASL OAUTHBEARER, from an endpoint or a function, replaced before they expire.

Imports settings, errors and process of agents; kafka imports it.
"""
