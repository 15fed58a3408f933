"""The replica: a channel to one of two binlogs, the applier, and the tables with the position."""
