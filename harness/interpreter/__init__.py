"""Runs a test on any runtime: client processes, the nemesis process, and the order of their phases."""
