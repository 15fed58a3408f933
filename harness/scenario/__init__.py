"""A test and all that its seed decides; the clusters that can be tested, and consent to load their code."""
