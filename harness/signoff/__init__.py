"""The sign-off of a release: two sweeps compared, a decision with its rule, and its grounds."""
