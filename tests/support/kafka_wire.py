"""Kafka's wire protocol for tests: frames, messages as dictionaries, and a blocking connection.

A message body is a dictionary with the field names of kafka_messages.py and producer_messages.py; what is left out
takes its default, so a test names what it cares about. A tagged field is written when it is in the dictionary, and is
there after reading when it was on the wire; unknown tags are kept as `_tags: {number: bytes}`. Records stay bytes:
kafka_batch.py is for them.

    with Connection("127.0.0.1", 9092) as broker:
        broker.call("Metadata", 12, {"topics": [{"name": "orders"}]})["brokers"]

A scripted peer uses the same functions from the other side: read_frame, parse_request, response_frame.
"""

import collections
import re
import socket
import struct
import uuid

from tests.support import kafka_messages, producer_messages

FRAME_SIZE_MAX = 100 << 20

_INTEGERS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "bool": ">?"}
_NO_UUID = bytes(16)


class WireError(Exception):
    """Bytes that are not the message they should be."""


class Closed(WireError):
    """The peer closed the connection where a frame should have begun, or inside one."""


def _versions(text):
    first, _, last = text.partition("-")
    if text.endswith("+"):
        return range(int(text[:-1]), 1000)
    return range(int(first), int(last or first) + 1)


class Field:
    """A row of a message table."""

    _LINE = re.compile(
        r"(?P<name>\w+) (?P<type>\S+)(?: (?P<versions>\d+(?:\+|-\d+)?))?(?: null (?P<null>\d+(?:\+|-\d+)?))?"
        r"(?: tag (?P<tag>\d+))?(?: = (?P<default>.+))?"
    )

    def __init__(self, line):
        row = self._LINE.fullmatch(line)
        if not row:
            raise ValueError(f"not a field: {line!r}")
        self.name = row["name"]
        self.is_array = row["type"].startswith("[]")
        self.type = row["type"].removeprefix("[]")  # "" or "{}": a struct, of the fields below
        self.versions = _versions(row["versions"] or "0+")
        self.null = _versions(row["null"]) if row["null"] else ()
        self.tag = None if row["tag"] is None else int(row["tag"])
        self.fields = []
        self.default = self._default(row["default"])

    def _default(self, text):
        if text == "null":
            return None
        if self.is_array:
            return []
        if self.type in _INTEGERS:
            return int(text or 0)
        return {"string": text or "", "uuid": _NO_UUID, "bytes": b"", "records": b"", "{}": {}}[self.type]


def _parse_table(text):
    root = []
    open_lists = [root]
    for line in filter(None, text.splitlines()):
        field = Field(line.strip())
        depth = (len(line) - len(line.lstrip())) // 2
        del open_lists[depth + 1 :]
        open_lists[depth].append(field)
        open_lists.append(field.fields)
    return root


class Api:
    """One API: its number and the tables of its request and its response."""

    def __init__(self, name, key, newest, flexible, request, response):
        self.name = name
        self.key = key
        self.newest = newest
        self.first_flexible = flexible
        self.request = _parse_table(request)
        self.response = _parse_table(response)

    def is_flexible(self, version):
        return version >= self.first_flexible


_MESSAGES = {**kafka_messages.MESSAGES, **producer_messages.MESSAGES}
APIS = {name: Api(name, *row) for name, row in _MESSAGES.items()}
API_NAMES = {api.key: name for name, api in APIS.items()}


# --- Writing ---


def uvarint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _length(count, flexible, classic):
    """The length before a string, bytes or array; None is null."""
    if flexible:
        return uvarint(0 if count is None else count + 1)
    return struct.pack(classic, -1 if count is None else count)


def _tag_section(tags, flexible):
    if not flexible:
        return b""
    rows = (uvarint(tag) + uvarint(len(payload)) + payload for tag, payload in sorted(tags.items()))
    return uvarint(len(tags)) + b"".join(rows)


def _write_value(field, kind, value, version, flexible):
    if kind in _INTEGERS:
        return struct.pack(_INTEGERS[kind], value)
    if kind == "uuid":
        return value.bytes if isinstance(value, uuid.UUID) else value
    if kind == "string":
        data = None if value is None else value.encode()
        return _length(None if data is None else len(data), flexible, ">h") + (data or b"")
    if kind in ("bytes", "records"):
        return _length(None if value is None else len(value), flexible, ">i") + bytes(value or b"")
    return _write_struct(field.fields, value, version, flexible)


def _write_field(field, value, version, flexible):
    if value is None and version not in field.null:
        raise WireError(f"{field.name} cannot be null in version {version}")
    if not field.is_array:
        return _write_value(field, field.type, value, version, flexible)
    items = [_write_value(field, field.type, item, version, flexible) for item in value or ()]
    return _length(None if value is None else len(items), flexible, ">i") + b"".join(items)


def _write_struct(fields, body, version, flexible):
    unknown = set(body) - {field.name for field in fields} - {"_tags"}
    if unknown:
        raise WireError(f"no such field: {', '.join(sorted(unknown))}")
    out = []
    tags = dict(body.get("_tags", {}))
    for field in fields:
        if version not in field.versions:
            continue
        if field.tag is None:
            out.append(_write_field(field, body.get(field.name, field.default), version, flexible))
        elif field.name in body:
            tags[field.tag] = _write_field(field, body[field.name], version, flexible)
    return b"".join(out) + _tag_section(tags, flexible)


def encode(api, version, kind, body):
    """The bytes of a body without its header. `kind` is "request" or "response"."""
    return _write_struct(getattr(APIS[api], kind), body, version, APIS[api].is_flexible(version))


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


def request_header(key, version, correlation_id, client_id, flexible, tags=None):
    """Header v1, or v2 where flexible. The client id is never compact."""
    return (
        struct.pack(">hhi", key, version, correlation_id)
        + _write_value(None, "string", client_id, version, flexible=False)
        + _tag_section(tags or {}, flexible)
    )


def request_frame(api, version, correlation_id, body, client_id="tests"):
    flexible = APIS[api].is_flexible(version)
    header = request_header(APIS[api].key, version, correlation_id, client_id, flexible)
    return frame(header + encode(api, version, "request", body))


def response_frame(api, version, correlation_id, body):
    return frame(_response_header(api, version, correlation_id) + encode(api, version, "response", body))


def _has_response_tags(api, version):
    return APIS[api].is_flexible(version) and api != "ApiVersions"  # a client cannot know yet what the broker speaks


def _response_header(api, version, correlation_id):
    return struct.pack(">i", correlation_id) + _tag_section({}, _has_response_tags(api, version))


# --- Reading ---


class Reader:
    """Takes values off bytes one after the other; what is not there is a WireError."""

    def __init__(self, data):
        self.data = data
        self.position = 0

    def remaining(self):
        return len(self.data) - self.position

    def take(self, count):
        if count < 0 or count > self.remaining():
            raise WireError(f"{count} bytes at {self.position}, where {self.remaining()} are left")
        self.position += count
        return bytes(self.data[self.position - count : self.position])

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))[0]

    def uvarint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, flexible, classic):
        count = self.uvarint() - 1 if flexible else self.unpack(classic)
        return None if count < 0 else count

    def string(self, flexible=False):
        count = self.length(flexible, ">h")
        return None if count is None else self.take(count).decode()

    def tags(self):
        return {self.uvarint(): self.take(self.uvarint()) for _ in range(self.uvarint())}


def _read_value(field, reader, version, flexible):
    kind = field.type
    if kind in _INTEGERS:
        return reader.unpack(_INTEGERS[kind])
    if kind == "uuid":
        return reader.take(16)
    if kind == "string":
        return reader.string(flexible)
    if kind in ("bytes", "records"):
        count = reader.length(flexible, ">i")
        return None if count is None else reader.take(count)
    return _read_struct(field.fields, reader, version, flexible)


def _read_field(field, reader, version, flexible):
    if not field.is_array:
        return _read_value(field, reader, version, flexible)
    count = reader.length(flexible, ">i")
    return None if count is None else [_read_value(field, reader, version, flexible) for _ in range(count)]


def _read_struct(fields, reader, version, flexible):
    present = [field for field in fields if version in field.versions]
    body = {field.name: _read_field(field, reader, version, flexible) for field in present if field.tag is None}
    if flexible:
        tags = reader.tags()
        for field in present:
            if field.tag in tags:
                body[field.name] = _read_field(field, Reader(tags.pop(field.tag)), version, flexible)
        if tags:
            body["_tags"] = tags
    return body


def _read_body(api, version, kind, reader, may_have_rest=False):
    body = _read_struct(getattr(APIS[api], kind), reader, version, APIS[api].is_flexible(version))
    if reader.remaining() and not may_have_rest:
        raise WireError(f"{reader.remaining()} bytes behind the last field of {api} v{version} {kind}")
    return body


def decode(api, version, kind, data):
    return _read_body(api, version, kind, Reader(data))


Request = collections.namedtuple("Request", "api key version correlation_id client_id body payload")


def parse_request(payload, may_have_rest=False):
    """A request without its size. `api` and `body` are None where no table knows the API or the version. Brokers ignore
    bytes behind the last field; here they are an error unless they are allowed."""
    reader = Reader(payload)
    key, version, correlation_id = reader.unpack(">h"), reader.unpack(">h"), reader.unpack(">i")
    client_id = reader.string()
    api = API_NAMES.get(key)
    body = None
    if api and version <= APIS[api].newest:
        if APIS[api].is_flexible(version):
            reader.tags()
        body = _read_body(api, version, "request", reader, may_have_rest)
    return Request(api, key, version, correlation_id, client_id, body, payload)


def parse_response(api, version, payload):
    """(correlation id, body) of a response without its size."""
    reader = Reader(payload)
    correlation_id = reader.unpack(">i")
    if _has_response_tags(api, version):
        reader.tags()
    if api == "ApiVersions" and payload[4:6] == struct.pack(">h", 35):
        version = 0  # UNSUPPORTED_VERSION comes in the oldest form, whatever was asked
    return correlation_id, _read_body(api, version, "response", reader)


def read_exactly(sock, count):
    data = bytearray()
    while len(data) < count:
        piece = sock.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise Closed(f"closed after {len(data)} of {count} bytes")
        data += piece
    return bytes(data)


def read_frame(sock):
    """The next frame without its size; Closed where the peer ended."""
    size = struct.unpack(">i", read_exactly(sock, 4))[0]
    if not 0 <= size <= FRAME_SIZE_MAX:
        raise WireError(f"frame of {size} bytes")
    return read_exactly(sock, size)


class Connection:
    """A client's connection. Requests may be pipelined; responses are matched in order, as brokers send them."""

    def __init__(self, host, port, timeout=60.0, client_id="tests"):
        self.sock = socket.create_connection((host, port), timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.client_id = client_id
        self._next_correlation_id = 1
        self._in_flight = collections.deque()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def send(self, api, version, body=None, expect_response=True):
        """Sends a request and returns its correlation id. A Produce with acks=0 expects no response."""
        body = body or {}
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        if expect_response and not (api == "Produce" and body.get("acks") == 0):
            self._in_flight.append((api, version, correlation_id))
        self.sock.sendall(request_frame(api, version, correlation_id, body, self.client_id))
        return correlation_id

    def receive(self):
        """The body of the response to the oldest request in flight."""
        api, version, expected = self._in_flight.popleft()
        correlation_id, body = parse_response(api, version, read_frame(self.sock))
        if correlation_id != expected:
            raise WireError(f"answer to {correlation_id}, expected {expected} ({api} v{version})")
        return body

    def call(self, api, version, body=None):
        self.send(api, version, body)
        return self.receive()
