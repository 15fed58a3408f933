"""From the judgements of all checks to one verdict: promises, groups of findings, names for people."""
