"""A store: its region replicas, how they answer requests, and the rounds that advance watermarks."""
