"""Models by their axioms: which transaction each one reads from, what follows for the order of commits, and cycles."""
