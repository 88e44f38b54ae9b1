"""Valid and invalid records of the service's own topics, and a fake topic."""
