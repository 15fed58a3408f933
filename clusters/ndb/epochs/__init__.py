"""Global checkpoints: their master and participants."""
