"""Sources: an upstream log, and the ingestion that gives its records timestamps and acknowledges them."""
