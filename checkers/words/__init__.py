"""Names that checks and verdicts share: anomalies, consistency models, and how many checks become one verdict."""
