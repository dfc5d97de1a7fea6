"""The bytes of the state topic's records, read by an implementation that shares nothing with the program."""

import json
import pathlib
import unittest

from tests.support.state_records import decode, draw_salt, log_partition_of

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"
WIDE = {"original_pid", "salt", "timestamp_ms"}  # strings in the file, since JSON's numbers are doubles


def rows():
    return json.loads((VECTORS / "state_records.json").read_text())


def fields(row):
    return row and {name: int(value) if name in WIDE else value for name, value in row.items()}


class StateRecords(unittest.TestCase):
    def test_golden_bytes_say_what_stands_beside_them(self):
        self.assertTrue(rows())
        for row in rows():
            with self.subTest(row["name"]):
                value = None if row["value_hex"] is None else bytes.fromhex(row["value_hex"])
                kind, name, says = decode(bytes.fromhex(row["key_hex"]), value)
                self.assertEqual(kind, row["type"])
                self.assertEqual(name, fields(row["key"]))
                self.assertEqual(says, fields(row["value"]))

    def test_every_truncation_is_noticed(self):
        for row in rows():
            key = bytes.fromhex(row["key_hex"])
            for size in range(len(key)):
                with self.assertRaises(ValueError):
                    decode(key[:size], None) or self.fail("an unknown type")
            for size in range(len(row["value_hex"] or "") // 2):
                with self.assertRaises(ValueError):
                    decode(key, bytes.fromhex(row["value_hex"])[:size])

    def test_salts_are_those_that_every_implementation_draws(self):
        drawn = [row for row in rows() if "salts" in row]
        self.assertTrue(drawn)
        for row in drawn:
            salts = [draw_salt(bytes.fromhex(row["key_hex"]), attempt) for attempt in (0, 1, 1023)]
            self.assertEqual(salts, [int(salt) for salt in row["salts"]])

    def test_an_unknown_type_is_no_error(self):
        self.assertIsNone(decode(b"\x00\x04whatever", b""))

    def test_the_deciding_partition_is_that_of_java(self):
        for row in json.loads((VECTORS / "log_partitions.json").read_text()):
            with self.subTest(row):
                self.assertEqual(log_partition_of(row["topic_id"], row["partition"], row["of"]), row["log_partition"])


if __name__ == "__main__":
    unittest.main()
