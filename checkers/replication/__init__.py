"""Logs of transactions in pieces, and the states of those who apply them: framing, prefixes, positions, gaps.

Nodes, or a file from elsewhere, show logs and states as records: see docs/history-format.md.
"""
