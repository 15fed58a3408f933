"""Dependency graphs of any size: edges, the certificate that there is no cycle, cycles and their classes."""
