"""The tests' own protocol code against frames that Kafka's serializers wrote."""

import json
import pathlib
import unittest

from tests.support import kafka_batch, kafka_wire

VECTORS = pathlib.Path(__file__).resolve().parents[1] / "vectors"


class GoldenFrames(unittest.TestCase):
    def test_every_golden_message_is_read_and_written_back_byte_for_byte(self):
        seen = set()
        for row in json.loads((VECTORS / "golden_messages.json").read_text()):
            api, version, kind = row["api"], row["version"], row["kind"]
            if api not in kafka_wire.APIS or version > kafka_wire.APIS[api].newest:
                continue
            with self.subTest(api=api, version=version, kind=kind):
                frame = bytes.fromhex(row["frame_hex"])
                if kind == "request":
                    request = kafka_wire.parse_request(frame[4:])
                    written = kafka_wire.request_frame(
                        api, version, request.correlation_id, request.body, request.client_id
                    )
                else:
                    correlation_id, body = kafka_wire.parse_response(api, version, frame[4:])
                    written = kafka_wire.response_frame(api, version, correlation_id, body)
                self.assertEqual(written.hex(), frame.hex())
                seen.add((api, kind))
        self.assertGreaterEqual(len(seen), 15)


class GoldenBatches(unittest.TestCase):
    def test_checksums_of_golden_batches_are_the_ones_computed_here(self):
        checked = 0
        for row in json.loads((VECTORS / "golden_batches.json").read_text()):
            for batch in kafka_batch.split(bytes.fromhex(row["in_hex"])):
                if batch.magic == 2:
                    with self.subTest(row["name"]):
                        self.assertEqual(batch.crc, batch.computed_crc())
                    checked += 1
        self.assertGreater(checked, 40)

    def test_a_built_batch_is_read_back(self):
        for codec in ("none", "gzip"):
            records = [(b"k", b"v"), (None, b""), (b"x" * 300, None)]
            data = kafka_batch.build(
                records,
                producer_id=5,
                producer_epoch=1,
                base_sequence=7,
                base_offset=40,
                codec=codec,
            )
            (batch,) = kafka_batch.split(data)
            self.assertEqual(
                (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.count, batch.codec),
                (5, 1, 7, 3, codec),
            )
            self.assertEqual(batch.crc, batch.computed_crc())
            self.assertEqual(
                [(record.offset, record.key, record.value) for record in batch.read_records()],
                [(40 + index, *record) for index, record in enumerate(records)],
            )


if __name__ == "__main__":
    unittest.main()
