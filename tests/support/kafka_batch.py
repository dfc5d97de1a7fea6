"""Record batches (magic 2) for tests: built from records, taken apart, and checked, with a CRC-32C in plain Python.

     0        8     12      16  17    21    23    27      35    43    51   53    57      61
     | offset | len | epoch | m | crc | att | lst | first | max | pid | ep | seq | count | records
"""

import collections
import dataclasses
import gzip
import struct

HEADER_SIZE = 61
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")  # by the low three bits of the attributes
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_HEADER = struct.Struct(">qiibIhiqqqhii")


def _crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_CRC_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Batch:
    """A batch of any magic as it stood in the log; the fields below `magic` mean something for magic 2 only."""

    data: bytes
    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @property
    def codec(self):
        return CODECS[self.attributes & 7]

    @property
    def last_offset(self):
        return self.base_offset + self.last_offset_delta

    @property
    def is_transactional(self):
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self):
        return bool(self.attributes & CONTROL)

    @property
    def has_append_time(self):
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def records(self):
        return self.data[HEADER_SIZE:]

    def computed_crc(self):
        return crc32c(self.data[21:])

    def read_records(self):
        """[Record, ...]; only none and gzip are read here."""
        payload = {"none": bytes, "gzip": gzip.decompress}[self.codec](self.records)
        return _read_records(self, payload)


def split(data):
    """The whole batches of a records field or of a log segment; a part of one at the end is left out."""
    batches = []
    position = 0
    while len(data) - position >= 17:
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if size < 17 or size > len(data) - position:
            break
        piece = bytes(data[position : position + size])
        if piece[16] == 2:
            batches.append(Batch(piece, *_HEADER.unpack_from(piece)))
        else:
            batches.append(Batch(piece, *struct.unpack_from(">qiib", piece), *([0] * 9)))
        position += size
    return batches


Record = collections.namedtuple("Record", "offset timestamp key value")


def _read_varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), position


def _read_sized(data, position):
    size, position = _read_varint(data, position)
    if size < 0:
        return None, position
    return bytes(data[position : position + size]), position + size


def _read_records(batch, payload):
    records = []
    position = 0
    for _ in range(batch.count):
        size, position = _read_varint(payload, position)
        end = position + size
        timestamp_delta, position = _read_varint(payload, position + 1)  # behind the attributes
        offset_delta, position = _read_varint(payload, position)
        key, position = _read_sized(payload, position)
        value, position = _read_sized(payload, position)
        timestamp = batch.max_timestamp if batch.has_append_time else batch.base_timestamp + timestamp_delta
        records.append(Record(batch.base_offset + offset_delta, timestamp, key, value))
        position = end
    return records


def varint(value):
    value = (value << 1 ^ value >> 63) & 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _sized(data):
    return varint(-1) if data is None else varint(len(data)) + data


def _record(offset_delta, key, value):
    body = b"\0" + varint(0) + varint(offset_delta) + _sized(key) + _sized(value) + varint(0)
    return varint(len(body)) + body


def build(
    records,
    *,
    producer_id=-1,
    producer_epoch=-1,
    base_sequence=-1,
    attributes=0,
    codec="none",
    timestamp=1_700_000_000_000,
    base_offset=0,
    count=None,
):
    """A batch of `records` [(key, value), ...], all of one timestamp (ms). Only none and gzip are written here."""
    payload = b"".join(_record(index, key, value) for index, (key, value) in enumerate(records))
    if codec == "gzip":
        payload = gzip.compress(payload, mtime=0)
    elif codec != "none":
        raise ValueError(f"{codec} is not written by these tests")
    count = len(records) if count is None else count
    signed = (
        struct.pack(
            ">hiqqqhii",
            attributes | CODECS.index(codec),
            len(records) - 1,
            timestamp,
            timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        + payload
    )
    return struct.pack(">qiibI", base_offset, 9 + len(signed), -1, 2, crc32c(signed)) + signed
