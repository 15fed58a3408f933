"""Mapping files: what they may hold, the reader that each describes, and those of the formats that are known."""
