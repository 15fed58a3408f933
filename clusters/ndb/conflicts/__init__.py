"""Two clusters that replicate to each other, and find conflicts: functions for conflicts, applier, site."""
