"""How an application written in Python follows recommendations, whichever client it uses.

Imports models; ``followers.aiokafka`` and ``followers.faust`` import it.
"""
