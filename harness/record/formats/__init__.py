"""Files in and out: `load.py` knows all formats, and each becomes a history."""
