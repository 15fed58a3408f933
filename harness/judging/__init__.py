"""From a history to a report: the table of checks, the engine, the time limit of each check, and the verdict."""
