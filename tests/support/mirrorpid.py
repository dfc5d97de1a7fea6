"""mirrorpid as a child process of a test.

    with Mirrorpid([Source("eu", "MkU3OEVBNTcwNTJENDM2Qg")], bootstrap=["127.0.0.1:9092"]) as proxy:
        host, port = proxy.address("eu")

The program is $MIRRORPID, by default the release build. Leaving the block stops it and raises if it had died, did not
end with exit code 0, or reported an error of a sanitizer.
"""

import dataclasses
import json
import os
import pathlib
import re
import shutil
import socket

from tests.support import ports
from tests.support.process import Process, temporary_directory, wait_until

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
_START_ATTEMPTS = 5
_SANITIZER_REPORT = re.compile(r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error:")


def program():
    return pathlib.Path(os.environ.get("MIRRORPID", REPOSITORY / "build" / "release" / "mirrorpid"))


@dataclasses.dataclass
class Source:
    """A source of the configuration; ports that are 0 are chosen at start. `extra` holds more keys of it. `node_ids`,
    where they are given, are what has listeners, instead of a range."""

    name: str
    cluster_id: str
    nodes: int = 4  # listeners for node ids from first_node_id on
    first_node_id: int = 0
    listen_port: int = 0
    first_port: int = 0
    extra: dict = dataclasses.field(default_factory=dict)
    node_ids: tuple = ()

    def choose_ports(self):
        first = ports.free_ports(1 + (len(self.node_ids) or self.nodes))
        self.listen_port, self.first_port = first, first + 1

    def port_of(self, node):
        return self.first_port + (self.node_ids.index(node) if self.node_ids else node - self.first_node_id)

    def config(self):
        nodes = {
            "advertise": "127.0.0.1",
            "first_port": self.first_port,
            "first_node_id": self.first_node_id,
            "count": self.nodes,
        }
        if self.node_ids:
            nodes = {"map": {str(node): f"127.0.0.1:{self.port_of(node)}" for node in self.node_ids}}
        return {
            "name": self.name,
            "cluster_id": self.cluster_id,
            "listen": f"127.0.0.1:{self.listen_port}",
            "nodes": nodes,
            **self.extra,
        }


class Mirrorpid:
    def __init__(self, sources, bootstrap, extra=None, args=(), env=None):
        """`extra` holds more top-level keys of the configuration, or other values for those that are written here."""
        self.sources = {source.name: source for source in sources}
        self.bootstrap = bootstrap
        self.extra = extra or {}
        self.args = args
        self.env = env
        self.directory = None
        self.process = None
        self._has_ended = False  # as the test wanted it to

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, failure, *_):
        try:
            if self.process is not None and not self._has_ended:
                if failure:
                    self.kill()  # the test has a reason of its own; do not hide it behind another
                    print(f"--- log of mirrorpid\n{self.process.log_tail(80)}")
                else:
                    self.stop()
        finally:
            self.close()

    def close(self):
        """Ends it, whatever it is at, and removes its files."""
        if self.process is not None:
            self.process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def config(self):
        return {
            "version": 1,
            "destination": {"bootstrap_servers": list(self.bootstrap)},
            "state": "off",
            "sources": [source.config() for source in self.sources.values()],
            "log": {"level": "debug", "format": "text"},
            **self.extra,
        }

    def start(self):
        """Starts it: the first time with fresh ports, chosen anew where somebody took one; later with the same."""
        has_ports = all(source.listen_port for source in self.sources.values())
        for _ in range(1 if has_ports else _START_ATTEMPTS):
            self.launch(fresh_ports=not has_ports)
            if self.wait_started():
                return
        raise RuntimeError(f"mirrorpid did not start: exit code {self.process.exit_code}\n{self.process.log_tail()}")

    def launch(self, fresh_ports=False):
        """Starts it and returns at once; wait_started does the waiting."""
        if self.directory is None:
            self.directory = temporary_directory("mirrorpid-")
        if fresh_ports:
            for source in self.sources.values():
                source.choose_ports()
        config = self.directory / "mirrorpid.yaml"
        config.write_text(json.dumps(self.config(), indent=1))  # JSON is YAML
        log = self.directory / "stderr.log"
        log.write_bytes(b"")
        env = {**os.environ, **(self.env or {})}
        self._has_ended = False
        self.process = Process(
            [program(), "serve", "--config", config, *self.args], log, stdout=self.directory / "stdout.log", env=env
        )

    def wait_started(self):
        """False when somebody took one of its ports."""
        wait_until(lambda: self.process.exit_code is not None or self._accepts(), 120, "mirrorpid to listen")
        if self.process.exit_code is None:
            return True
        if "in use" in self.process.log():
            return False
        raise RuntimeError(f"mirrorpid ended at once: exit code {self.process.exit_code}\n{self.process.log_tail()}")

    def _accepts(self):
        for source in self.sources.values():
            try:
                socket.create_connection(("127.0.0.1", source.listen_port), 1).close()
            except OSError:
                return False
        return True

    def address(self, source):
        return "127.0.0.1", self.sources[source].listen_port

    def node_address(self, source, node):
        return "127.0.0.1", self.sources[source].port_of(node)

    def stop(self, seconds=60):
        """SIGTERM; returns the log. An early end, an exit code other than 0 or a sanitizer's report is an error."""
        died = self.process.exit_code
        exit_code = self.process.terminate(seconds) if died is None else died
        self._has_ended = True
        log = self.process.log()
        self._check_sanitizers(log)
        if died is not None:
            raise AssertionError(f"mirrorpid died: exit code {died}\n{self.process.log_tail()}")
        if exit_code != 0:
            raise AssertionError(f"exit code {exit_code} after SIGTERM\n{self.process.log_tail()}")
        return log

    def wait_for_end(self, seconds=60, exit_code=0):
        """The end after a signal that the test has sent; returns the log."""
        ended_with = self.process.wait(seconds)
        self._has_ended = True
        log = self.process.log()
        self._check_sanitizers(log)
        if ended_with != exit_code:
            raise AssertionError(f"exit code {ended_with}\n{self.process.log_tail()}")
        return log

    def kill(self):
        """SIGKILL, as a machine that loses power; returns the log."""
        self.process.kill()
        log = self.process.log()
        self._check_sanitizers(log)
        return log

    @staticmethod
    def _check_sanitizers(log):
        if _SANITIZER_REPORT.search(log):
            raise AssertionError(f"a sanitizer reported\n{log}")

    def log(self):
        return self.process.log()

    def rss(self):
        """Bytes of memory in use now; the peak is counted anew from here on."""
        pathlib.Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self._memory("VmRSS")

    def peak(self):
        """The most bytes of memory in use since rss() was called last: what was given back in between counts, too."""
        return self._memory("VmHWM")

    def _memory(self, name):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", status)[1]) * 1024

    def fds(self):
        """Number of open descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))
