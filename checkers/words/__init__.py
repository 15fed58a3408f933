"""Names that checks and verdicts share: anomalies, consistency models, and the composition of one verdict."""
