"""docs/topics.md and docs/topics/: made of models/records, and what records are held to."""
