"""The rows of tests/vectors that are read from Python."""

import csv
import functools
import pathlib

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"


@functools.cache
def _frames():
    with open(VECTORS / "frames.tsv", newline="") as file:
        return {row["#id"]: bytes.fromhex(row["hex"]) for row in csv.DictReader(file, delimiter="\t")}


def frame_of(name):
    """A frame of frames.tsv."""
    return _frames()[name]
