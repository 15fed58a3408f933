"""A whole cluster in one thread on virtual time: loop, hosts, disks, clocks, and faults."""
