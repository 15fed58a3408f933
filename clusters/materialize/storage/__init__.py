"""Storage: shards of tables and sources, each a collection of updates between since and upper."""
