"""Rules about watermarks: the events that may follow them, and those that must precede them."""
