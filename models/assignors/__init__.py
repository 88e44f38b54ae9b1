"""Task assignors: a scenario in, a decision out."""
