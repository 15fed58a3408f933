"""The report on a terminal: a few lines before the verdict, or all tables."""
