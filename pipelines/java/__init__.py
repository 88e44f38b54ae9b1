"""Find Java, fetch the published jars, and compile against them.

Imports nothing of demo; processes of Java import it.
"""
