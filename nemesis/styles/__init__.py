"""The styles of drawn fault plans: what strikes, how long, and what else is in force meanwhile."""
