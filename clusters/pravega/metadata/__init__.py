"""The metadata node, and the node that keeps the durable logs of containers."""
