"""Checks of the state that nodes hold and report: restarts, replicas, epochs, progress."""
