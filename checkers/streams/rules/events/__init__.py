"""Rules about events: their order, repetitions and values."""
