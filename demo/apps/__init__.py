"""Real Kafka Streams applications, instance by instance.

Imports cluster, java and processes; the story and tests import it.
"""
