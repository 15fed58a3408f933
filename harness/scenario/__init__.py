"""A test and all choices of its seed; the clusters that can be tested, and consent to load their code."""
