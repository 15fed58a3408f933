"""A store: its region replicas, and how they answer requests."""
