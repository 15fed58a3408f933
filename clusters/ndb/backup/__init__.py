"""A backup of all rows at the end of a global checkpoint, taken while transactions go on."""
