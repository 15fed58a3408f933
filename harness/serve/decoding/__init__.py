"""The records of runs, decoded in processes of their own: each request has a time and a memory limit."""
