"""docs/topics.md and docs/topics/, made of models/records, and the validation of records."""
