"""Rules about logs: their owners and positions, and what several readers of one saw."""
