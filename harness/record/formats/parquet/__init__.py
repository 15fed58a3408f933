"""A history in Parquet: its schema, rows, names and operations, and the limits and checks of foreign files."""
