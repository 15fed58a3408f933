"""The commands on recorded histories: judge one or many, write one in another format."""
