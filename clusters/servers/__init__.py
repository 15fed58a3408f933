"""Code that several real servers share: clients, subscribers, the stored form of values, and promises by number."""
