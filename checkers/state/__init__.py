"""Whether what nodes hold and report agrees with what was acknowledged: restarts, replicas, epochs, progress."""
