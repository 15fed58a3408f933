"""Carries out a test against any runtime: client processes, the nemesis process, and the order of their phases."""
