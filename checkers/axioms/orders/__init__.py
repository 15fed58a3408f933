"""The search for an order of versions that satisfies a level: guesses, a proof that there is none, and a solver."""
