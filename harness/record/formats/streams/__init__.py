"""Change streams of other systems: envelopes, mapping files, positions, and their conversion to events."""
