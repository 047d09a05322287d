"""Shards of a sweep on the workers of an executor."""
