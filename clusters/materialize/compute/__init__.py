"""Compute: copies of collections, the views over them, and answers at a timestamp."""
