"""A report for people and programs: the page, the terminal, JUnit, GitHub, and the evidence that they show."""
