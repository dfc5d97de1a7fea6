"""Free loopback ports. Below the range that the kernel hands out by itself, so that no outgoing connection takes one
between the choice and the bind; another test run still may, so whoever binds them must be ready to choose again."""

import random
import socket

_FIRST, _LAST = 10000, 32000
_taken = set()
_random = random.SystemRandom()  # parallel runs must not walk the same sequence


def _is_free(port):
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: old connections do not count
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_ports(count=1):
    """The first of `count` consecutive free ports; this process hands out none of them again."""
    for _ in range(1000):
        first = _random.randrange(_FIRST, _LAST - count)
        ports = range(first, first + count)
        if _taken.isdisjoint(ports) and all(map(_is_free, ports)):
            _taken.update(ports)
            return first
    raise RuntimeError(f"no {count} consecutive free ports between {_FIRST} and {_LAST}")
