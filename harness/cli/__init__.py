"""The commands of `seamark`, one file each; `main.py` puts them together."""
