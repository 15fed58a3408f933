"""Log backup (PiTR): what a region's leader uploads, and up to where a restore may count on it."""
