"""Rules about watermarks: what may follow them, and what must have come before."""
