"""The change stream: publishers, subscriptions, and the subscriber with its library and user."""
