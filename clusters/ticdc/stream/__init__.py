"""The change stream: what a store sends, and the capture that matches, sorts and writes it downstream."""
