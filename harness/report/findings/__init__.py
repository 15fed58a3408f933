"""The findings of a report as a page shows them: in groups, with their evidence, pictures and commands."""
