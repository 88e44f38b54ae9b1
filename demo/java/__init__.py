"""Finding Java, and fetching the published jars.

Imports nothing of demo; processes of Java import it.
"""
