"""Tokens for SASL's OAUTHBEARER: from an endpoint or a function, kept until they get old.

Imports settings, errors and process of agents; kafka imports it.
"""
