"""The sign-off of a release: two sweeps compared, a decision with its rule, and all that it rests on."""
