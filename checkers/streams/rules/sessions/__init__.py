"""Rules about sessions: what they cover, where they begin, resume and end."""
