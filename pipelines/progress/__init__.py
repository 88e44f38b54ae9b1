"""What a stream tells of itself on caughtup-pipeline-progress.

Imports spark; the streams import it.
"""
