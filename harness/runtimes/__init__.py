"""Where nodes run: in the simulation, or in containers as real processes."""
