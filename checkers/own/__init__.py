"""What a user's own check is written with: a history as rows with their values, and findings."""
