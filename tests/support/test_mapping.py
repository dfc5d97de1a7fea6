"""The tests' own mapping against the vectors."""

import json
import pathlib
import unittest

from tests.support.mapping import mapped, region_of

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"


class Vectors(unittest.TestCase):
    def test_regions_and_mapped_ids_are_those_of_the_vectors(self):
        rows = json.loads((VECTORS / "cluster_ids.json").read_text())
        self.assertTrue(rows)
        for row in rows:
            with self.subTest(row["cluster_id"]):
                self.assertEqual(region_of(row["cluster_id"]), row["region"])
                for producer_id, expected in row["mapped"].items():
                    self.assertEqual(mapped(row["region"], int(producer_id)), int(expected))

    def test_negative_ids_stay(self):
        for producer_id in (-1, -7, -(1 << 63), mapped(42, 5)):
            self.assertEqual(mapped(99, producer_id), producer_id)


if __name__ == "__main__":
    unittest.main()
