"""What a campaign keeps in its folder: its order, and a row for each run under a chain of hashes."""
