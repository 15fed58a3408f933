"""Commands for failing runs: repeat one, make it small, search for another."""
