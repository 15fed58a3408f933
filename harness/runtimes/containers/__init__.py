"""A cluster in containers: deployment, nodes, subscribers, and the child process that carries out the run."""
