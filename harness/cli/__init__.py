"""The commands of `seamark`, one file each; `main.py` assembles them."""
