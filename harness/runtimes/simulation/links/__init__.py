"""Links in memory: connections, datagrams, and the conditions on their paths."""
