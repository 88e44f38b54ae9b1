"""What a test reads from a real cluster, and what goes on beside it."""
