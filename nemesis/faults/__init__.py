"""The packages of faults, one file each. `nemesis.registry` finds them here."""
