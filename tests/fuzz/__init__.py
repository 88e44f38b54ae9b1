"""Hostile records by the million, through everything that the service makes of records."""
