"""Links between containers: proxies, their ports, relays for clients, and calls."""
