"""The replicated log of a region: terms, votes, a quorum, leases."""
