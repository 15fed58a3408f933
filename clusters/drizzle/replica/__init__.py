"""Replication: the producer that fetches, and the consumer that applies."""
