"""Invariants of simple workloads: conditions on each read that need no order of transactions.

Rules: Jepsen's checkers of these names (jepsen-io/jepsen), restated in part 5 of the specification. Every check reads a
history of its own workload, plain operations or transactions over lists, and is silent about any other.
"""
