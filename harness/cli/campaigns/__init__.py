"""The commands about many runs, one file each."""
