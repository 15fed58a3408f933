"""Log backup (PiTR): what a region's leader uploads, and the timestamp up to which a restore is complete."""
