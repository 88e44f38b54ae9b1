"""The follower for Kafka Streams: Java sources, and what makes a jar of them."""
