"""``__consumer_offsets``: a service reads it poll by poll, an agent applies what changed.

Imports kafka, process and the models; app registers both.
"""
