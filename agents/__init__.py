"""The service and the commands: all I/O. ``app`` wires the service together.

Imports models; the command line imports pipelines, demo and bench when they are called.
"""
