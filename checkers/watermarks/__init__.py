"""Whether every watermark is a consistent cut: watermarks as readers in the graph. Begin at check.py."""
