"""Commands for a run that failed: repeat it, make it small, search for another."""
