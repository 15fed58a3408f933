"""Rules about sessions: what they cover, and where they begin, resume and end."""
