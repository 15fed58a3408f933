"""Histories in EDN, as Jepsen writes them: forms, lines, parts read in several processes, and writing."""
