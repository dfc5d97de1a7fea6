"""A scripted destination and the two ends of a session through the proxy.

    with ScriptedBroker() as broker, proxy_for(broker) as proxy:
        client = Client(proxy.address("eu"))
        client.send("Metadata", 12)
        upstream = broker.accept()
        upstream.answer(upstream.request(), {"brokers": []})

The proxy's own look at the cluster (client id `mirrorpid`) is answered by itself, from `broker.nodes`; every other
connection waits in accept() for its script.
"""

import contextlib
import itertools
import os
import queue
import select
import socket
import struct
import threading
import unittest

from tests.support import kafka_batch, kafka_wire, mirrorpid
from tests.support.kafka_wire import Closed
from tests.support.mirrorpid import Mirrorpid, Source
from tests.support.process import wait_until

TIMEOUT = 30  # seconds; nothing that goes right takes long, and machines that build beside are slow
CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER_CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"

_WATCHER = b"\x00\x09mirrorpid"  # the client id of the proxy's own connections, behind the twelve bytes of a head
_VERSIONS = {"Produce": (0, 13), "Fetch": (4, 18), "ListOffsets": (1, 11), "Metadata": (0, 13), "ApiVersions": (0, 4)}
API_KEYS = [
    {"api_key": kafka_wire.APIS[name].key, "min_version": first, "max_version": last}
    for name, (first, last) in _VERSIONS.items()
]


class Peer:
    """One end of a connection. What stands in `buffered` was received already."""

    def __init__(self, sock, buffered=b""):
        self.sock = sock
        self.sock.settimeout(TIMEOUT)
        self._buffered = buffered

    def recv(self, count):
        """What is there; nothing where the other side has ended."""
        if self._buffered:
            piece, self._buffered = self._buffered[:count], self._buffered[count:]
            return piece
        try:
            return self.sock.recv(count)
        except ConnectionError:
            return b""

    def read(self, count):
        data = bytearray()
        while len(data) < count:
            piece = self.recv(min(count - len(data), 1 << 20))
            if not piece:
                raise Closed(f"closed after {len(data)} of {count} bytes")
            data += piece
        return bytes(data)

    def frame(self):
        """The next frame, its size field included."""
        size = self.read(4)
        return size + self.read(struct.unpack(">i", size)[0])

    def read_to_end(self):
        """All that comes until the other side ends; what it resets has ended too."""
        data = bytearray()
        while piece := self.recv(1 << 20):
            data += piece
        return bytes(data)

    def is_silent(self, seconds):
        """Whether neither a byte nor an end comes for so long."""
        return not self._buffered and not select.select([self.sock], [], [], seconds)[0]

    def send_bytes(self, data):
        self.sock.sendall(data)

    def end(self):
        """FIN: no more bytes come, but answers are still read."""
        self.sock.shutdown(socket.SHUT_WR)

    def reset(self):
        """RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self):
        self.sock.close()


class Client(Peer):
    _ids = itertools.count()

    def __init__(self, address, tls=None, server_hostname=None):
        sock = socket.create_connection(address, TIMEOUT)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            sock = tls.wrap_socket(sock, server_hostname=server_hostname)
        super().__init__(sock)
        self.id = f"tests-{next(self._ids)}"
        self._next_correlation_id = 1

    def send(self, api, version, body=None):
        """Sends a request; returns its frame."""
        frame = kafka_wire.request_frame(api, version, self._next_correlation_id, body or {}, self.id)
        self._next_correlation_id += 1
        self.send_bytes(frame)
        return frame

    def response(self, api, version):
        """(correlation id, body) of the next response."""
        return kafka_wire.parse_response(api, version, self.frame()[4:])


class Upstream(Peer):
    """The broker's end of a connection that the proxy has dialled."""

    def request(self):
        return kafka_wire.parse_request(self.frame()[4:])

    def answer(self, request, body=None):
        """Sends the response to a request; returns its frame."""
        frame = kafka_wire.response_frame(request.api, request.version, request.correlation_id, body or {})
        self.send_bytes(frame)
        return frame


class ScriptedBroker:
    def __init__(self, node_id=0, host="127.0.0.1", tls=None, port=0):
        self.node_id = node_id
        self.host = host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=512)
        self.port = self._listener.getsockname()[1]
        self.nodes = {node_id: (host, self.port)}  # what the proxy learns; may be replaced at any time
        self.cluster_id = "scripted"
        self.looks = 0  # answers to the proxy's own Metadata requests
        self.dialled = 0  # connections for scripts, once something came on them
        self._tls = tls
        self._waiting = queue.Queue()
        self._open = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept_all, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def address(self):
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def accept(self, seconds=TIMEOUT):
        """The next connection that the proxy has dialled for a client."""
        try:
            return self._waiting.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no connection for a client within {seconds} s") from None

    def close(self):
        """Ends the listener and all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
                sock.close()

    def _accept_all(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._sort, args=(sock,), daemon=True).start()

    def _sort(self, sock):
        try:
            sock.settimeout(TIMEOUT)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                sock = self._tls.wrap_socket(sock, server_side=True)
            start = self._read_start(sock)
            is_watcher = start[12:] == _WATCHER
            with self._lock:
                self._open.add(sock)
                self.dialled += 0 if is_watcher else 1
            peer = Upstream(sock, start)
            if is_watcher:
                self._answer_watcher(peer)
            else:
                self._waiting.put(peer)
        except (OSError, kafka_wire.WireError):
            sock.close()

    @staticmethod
    def _read_start(sock):
        """Enough of the first request to know whose it is; less where no more comes at once."""
        start = sock.recv(1)
        if not start:
            raise Closed("closed without a byte")
        sock.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while len(start) < 12 or _WATCHER.startswith(start[12:]) and len(start) < 12 + len(_WATCHER):
                piece = sock.recv(12 + len(_WATCHER) - len(start))
                if not piece:
                    break
                start += piece
        return start

    def _answer_watcher(self, peer):
        while True:
            # librdkafka 2.8 writes the empty list of topics in the form of older versions, and three bytes remain.
            request = kafka_wire.parse_request(peer.frame()[4:], may_have_rest=True)
            if request.api == "ApiVersions":
                peer.answer(request, {"api_keys": API_KEYS})
            elif request.api == "Metadata":
                peer.answer(request, self._metadata())
                self.looks += 1
            else:
                raise kafka_wire.WireError(f"the proxy itself asks with API {request.key}")

    def _metadata(self):
        brokers = [{"node_id": node, "host": host, "port": port} for node, (host, port) in self.nodes.items()]
        return {"brokers": brokers, "cluster_id": self.cluster_id, "controller_id": self.node_id, "topics": []}


class SessionCase(unittest.TestCase):
    """Has `broker` and `proxy`; what a test opens is closed when it ends."""

    def client(self, node=None, source="eu"):
        """At the listener of a source, or of a node there."""
        address = self.proxy.address(source) if node is None else self.proxy.node_address(source, node)
        client = Client(address)
        self.addCleanup(client.close)
        return client

    def session(self, node=None, source="eu"):
        """Both ends of a session whose first request, with correlation id 1, has been answered."""
        client = self.client(node, source)
        client.send("ApiVersions", 0)
        upstream, request = self.upstream_of(client)
        upstream.answer(request, {"api_keys": [{"api_key": 18, "max_version": 4}]})
        client.response("ApiVersions", 0)
        return client, upstream

    def upstream_of(self, client, broker=None):
        """The connection that was dialled for a client, and the request on it. A test before this one may have left
        others behind."""
        while True:
            upstream = (broker or self.broker).accept()
            self.addCleanup(upstream.close)
            with contextlib.suppress(Closed):
                request = upstream.request()
                if request.client_id == client.id:
                    return upstream, request


def black_hole():
    """A listener that accepts nothing: its queue is full, so that a connection to it never comes about.
    Returns it and what fills it."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=0)
    fillers = []
    while True:
        sock = socket.socket()
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        fillers.append(sock)
        if not select.select([], [sock], [], 0.3)[1]:
            return listener, fillers


def batch(producer_id=5, payload=b"value", **options):
    """A records field of one batch, as an idempotent producer sends it."""
    options = {"producer_epoch": 0, "base_sequence": 0, **options}
    return kafka_batch.build([(b"key", payload)], producer_id=producer_id, **options)


def produce(records, acks=-1, partition=0, topic="orders"):
    """The body of a Produce request of a version up to 12."""
    partitions = [{"index": partition, "records": records}]
    return {"acks": acks, "topic_data": [{"name": topic, "partition_data": partitions}]}


def records_of(request):
    return request.body["topic_data"][0]["partition_data"][0]["records"]


def has_sanitizer():
    """Whether the program is built with the address or the thread sanitizer: its memory tells nothing then."""
    data = mirrorpid.program().read_bytes()
    return b"__asan_init" in data or b"__tsan_init" in data


def proxy_for(*brokers, extra=None, limits=None, sources=None, log=None):
    sources = sources or [Source("eu", CLUSTER_ID)]
    extra = {
        "limits": {"drain_timeout": "20s", "connect_timeout": "5s", "threads": 2, **(limits or {})},
        "log": {"level": "debug", "format": "text", **(log or {})},
        **(extra or {}),
    }
    return Mirrorpid(sources, [broker.address for broker in brokers], extra)


def wait_for_log(proxy, *texts, seconds=TIMEOUT, after=0):
    """Waits for a line that holds all of these, behind the first `after` lines; returns it."""

    def find():
        lines = proxy.log().splitlines()[after:]
        return next((line for line in lines if all(text in line for text in texts)), None)

    return wait_until(find, seconds, f"a log line with {texts}")


def log_size(proxy):
    return len(proxy.log().splitlines())


def wait_for_fds(proxy, count):
    """Descriptors are given back when both sides of a session have ended."""
    try:
        wait_until(lambda: proxy.fds() <= count, TIMEOUT, "descriptors")
    except TimeoutError:
        folder = f"/proc/{proxy.process.pid}/fd"
        names = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder)]
        raise AssertionError(f"{len(names)} descriptors, at first {count}: {sorted(names)}") from None
