"""Faults in containers: what each does, how it is undone, and how its effect is measured."""
