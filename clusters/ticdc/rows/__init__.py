"""The rows of a region: locks, versions, rollback records, and the rules by which requests change them."""
