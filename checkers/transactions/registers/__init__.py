"""Registers in transactions: versions, what orders them, dependencies, anomalies, and sentences about them."""
