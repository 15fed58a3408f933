"""Rules about logs: their owners and positions, and the agreement of several readers."""
