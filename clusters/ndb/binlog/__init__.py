"""The binlog: a subscriber that writes each epoch as one transaction, its index, and whoever reads them."""
