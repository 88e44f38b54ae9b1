"""Applications that follow recommendations, for tests of followers."""
