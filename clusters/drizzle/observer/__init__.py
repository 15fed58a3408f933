"""The observer: it follows a file log, and applies pieces as they come."""
