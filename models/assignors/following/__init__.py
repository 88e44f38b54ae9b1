"""The rules by which an application follows a recommendation or refuses it.

Imports models.assignment; exact mode and the Python followers import it.
"""
