"""Workloads for systems whose answers name timestamps."""
