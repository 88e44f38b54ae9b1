"""Records of the service's own topics, good ones and bad ones, and a topic to write to."""
