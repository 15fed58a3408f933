"""Disks of nodes that can lose power: separate file systems, each on a loop device."""
