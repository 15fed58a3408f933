"""SUBSCRIBE: subscribers that follow collections, with progress messages."""
