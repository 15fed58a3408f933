"""Controllers: the life of transactions, and the processor that commits them and scales the stream."""
