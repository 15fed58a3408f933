"""Makes a failing run small: fewer faults, operations, keys and seconds, with the same symptom."""
