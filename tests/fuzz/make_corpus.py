#!/usr/bin/env python3
"""Writes the seeds in corpus/ from tests/vectors: of each message the first and the last version, and where its
addresses changed form. The bytes in front say what the targets' comments say."""
import csv
import json
import pathlib

HERE = pathlib.Path(__file__).parent
VECTORS = HERE.parent / "vectors"

# The order of codec::apis: key, first version, which of its messages have a table.
BOTH, REQUEST, RESPONSE = ("request", "response"), ("request",), ("response",)
APIS = [(0, 0, BOTH), (1, 0, RESPONSE), (3, 0, RESPONSE), (10, 0, RESPONSE), (18, 0, RESPONSE), (22, 0, BOTH),
        (24, 0, REQUEST), (25, 0, REQUEST), (26, 0, BOTH), (27, 0, BOTH), (28, 0, REQUEST), (55, 0, RESPONSE),
        (60, 0, RESPONSE), (61, 0, RESPONSE), (65, 0, RESPONSE), (66, 0, BOTH), (78, 1, RESPONSE), (79, 1, RESPONSE)]
TELL_IDS = (22, 26, 27, 61, 65, 66)  # these responses are read for producer ids, and have no addresses
HEADERS = 2
TABLES = [(key, kind) for key, _, kinds in APIS for kind in kinds]  # the order of support::all_messages
ALL_NODES, SOME_NODES = 0xff, 0x0a


def write(target, name, *parts):
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"".join(bytes([p]) if isinstance(p, int) else p for p in parts))


def body(row):
    """What follows the header of a golden message."""
    frame = bytes.fromhex(row["frame_hex"])
    if row["kind"] == "response":
        return frame[8 + row["header_version"]:]  # the header's tagged fields are an empty one
    client_id = int.from_bytes(frame[12:14], "big", signed=True)
    return frame[14 + max(client_id, 0) + (row["header_version"] == 2):]


def main():
    rows = json.loads((VECTORS / "golden_messages.json").read_text())
    rows = [row for row in rows if (row["api_key"], row["kind"]) in TABLES]
    chosen = {}
    for row in rows:
        of_kind = [r["version"] for r in rows if (r["api_key"], r["kind"]) == (row["api_key"], row["kind"])]
        if row["version"] in (min(of_kind), max(of_kind)):
            chosen[row["api"], row["kind"], row["version"]] = row
    for (name, kind, version), row in sorted(chosen.items()):
        key = row["api_key"]
        index, first = next((i, first) for i, (k, first, _) in enumerate(APIS) if k == key)
        file = f"{name}_{kind}_v{version}"
        write("walker", file, HEADERS + TABLES.index((key, kind)), version - first, 6, body(row))
        frame = bytes.fromhex(row["frame_hex"])[4:]
        if key == 18:
            write("api_versions", file, version, frame)
        elif kind == "response" and key not in TELL_IDS:
            write("endpoints", file, index, version - first, ALL_NODES, frame)
            write("endpoints", file + "_some", index, version - first, SOME_NODES, frame)

    with open(VECTORS / "frames.tsv", newline="") as file:
        frames = {row[0]: bytes.fromhex(row[3]) for row in csv.reader(file, delimiter="\t") if not row[0].startswith("#")}
    write("walker", "request_header_huge_tag", 0, 1, 0, frames["F7"][12:])
    write("walker", "response_header", 1, 1, 0, b"\0")
    for name, version in (("S1", 5), ("S1b", 5), ("S2", 4)):
        write("api_versions", name, version, frames[name][4:])


if __name__ == "__main__":
    main()
