"""Names that checks share: anomalies and consistency models."""
