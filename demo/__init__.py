"""The embedded cluster (real Apache Kafka) and the demo applications."""
