"""The process of a run in containers whose node image cannot be built: broken_child.py RECIPE RUN_JSON JOURNAL."""

import runpy
import sys
from dataclasses import replace

import harness.runtimes.containers.images.images
from harness.runtimes.containers.images.catalogue import IMAGES, NODE

if __name__ == "__main__":
    spoiled = replace(NODE, recipe=sys.argv.pop(1))
    setattr(harness.runtimes.containers.images.images, "IMAGES", {**IMAGES, NODE.name: spoiled})  # noqa: B010  For mypy, too.
    runpy.run_module("harness.runtimes.containers.child", run_name="__main__")
