"""The catalog: a durable, serializable store of which every transaction names the epoch of its writer."""
