"""Spark against a real broker: the pure parts, the readers and writers, and what kills leave."""
