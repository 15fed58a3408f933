"""The process that cuts slices out of histories. It loads the libraries of all formats, which the follower need not."""

from pathlib import Path

from harness.serve.decoding.child import answer_all
from harness.serve.decoding.requests import Cut, Done
from harness.serve.decoding.slices import write_slice


def answered(request: Cut) -> Done:
    """Write the slice, and answer when its file is there."""
    write_slice(Path(request.run), request.form, request.wanted, Path(request.path))
    return Done()


if __name__ == "__main__":
    answer_all(answered, Cut)
