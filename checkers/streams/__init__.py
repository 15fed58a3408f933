"""The contract of a change stream: its rules and findings. Begin with check.py."""
