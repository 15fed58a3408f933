"""Runs one machine in a process of its own, with TCP links, a durable state and a control channel."""
