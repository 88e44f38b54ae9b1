"""Finding Java, fetching the published jars, and compiling against them.

Imports nothing of demo; processes of Java import it.
"""
