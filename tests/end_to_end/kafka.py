"""Real Kafka clusters on loopback: started, stopped, killed, and their logs read from disk.

    with Cluster("4.4.0", nodes=2) as cluster:
        cluster.create_topic("orders", partitions=6)
        ...
        for entry in cluster.dump_log("orders", 0): ...

Several start at once: `start_all([a, b])`. A machine that is busy takes minutes for what takes seconds otherwise, so
every deadline here is minutes.
"""

import base64
import contextlib
import os
import re
import shutil
import subprocess
import time

from tests.end_to_end import kafka_jars
from tests.support import kafka_batch, kafka_wire, ports
from tests.support.process import Process, temporary_directory, wait_until

_READY_TIMEOUT = 300  # seconds
_TOOL_TIMEOUT = 180
_START_ATTEMPTS = 4

_LOG4J_1 = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d %p %m (%c)%n
"""
_LOG4J_2 = """rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=%d %p %m (%c)%n
"""
# Every request with its header, as JSON.
_REQUESTS_1 = "log4j.logger.kafka.request.logger=DEBUG\n"
_REQUESTS_2 = "logger.requests.name=kafka.request.logger\nlogger.requests.level=DEBUG\n"
_REQUEST_HEADER = re.compile(
    r'"requestApiKey":\d+,"requestApiVersion":(\d+),"correlationId":-?\d+,"clientId":"([^"]*)".*?'
    r'"requestApiKeyName":"(\w+)"'
)
# Small heaps and the first compiler alone: these brokers live for a minute, and several of them share two cores.
_JVM = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xshare:auto", "-Djava.awt.headless=true"]


def random_cluster_id():
    return base64.urlsafe_b64encode(b"K" + os.urandom(15)).decode().rstrip("=")


def _is_number(text):
    return re.fullmatch(r"-?\d+", text) is not None


def _parse_dump(text):
    """The output of DumpLogSegments: {path of a file: [batch as a dictionary, ...]}."""
    files = {}
    entries = None
    for line in text.splitlines():
        if line.startswith("Dumping "):
            entries = files.setdefault(line.removeprefix("Dumping ").strip(), [])
        elif line.startswith("baseOffset: "):
            entry = {}
            for name, value in re.findall(r"(\w+): (\S+)", line):
                if value in ("true", "false"):
                    entry[name.lower() if name.lower() == "isvalid" else name] = value == "true"
                else:
                    entry[name] = int(value) if _is_number(value) else value
            entries.append(entry)
    return files


class Cluster:
    """A cluster of `nodes` nodes with ids from 1 on, or of those in `node_ids`; the first `controllers` of them are
    controllers, too.

    `extra` holds broker properties. Topics come from create_topic only. Everything lies in a temporary directory that
    goes away with the cluster. With `log_requests` request_versions can tell what each client has sent."""

    def __init__(
        self,
        version,
        nodes=1,
        cluster_id=None,
        extra=None,
        controllers=1,
        format_arguments=(),
        node_ids=None,
        log_requests=False,
    ):
        self.version = version
        self.nodes = list(node_ids or range(1, nodes + 1))
        self.cluster_id = cluster_id or random_cluster_id()
        self.controllers = self.nodes[:controllers]
        self.extra = extra or {}
        self.format_arguments = format_arguments  # of StorageTool
        self.log_requests = log_requests
        self.directory = None
        self._ports = {}
        self._controller_ports = {}
        self._processes = {}

    def __enter__(self):
        start_all([self])
        return self

    def __exit__(self, *_):
        self.close()

    # --- Addresses and files ---

    def address(self, node=1):
        return "127.0.0.1", self._ports[node]

    @property
    def bootstrap(self):
        return [f"127.0.0.1:{self._ports[node]}" for node in self.nodes]

    def connect(self, node=1, timeout=60.0):
        return kafka_wire.Connection(*self.address(node), timeout=timeout)

    def broker_log(self, node=1):
        return self._log_path(node).read_text(errors="replace")

    def request_versions(self, client_id):
        """{API: versions} of what a client has sent, as all running nodes have logged it."""
        versions = {}
        for node in self.nodes:
            for version, client, api in _REQUEST_HEADER.findall(self.broker_log(node)):
                if client == client_id:
                    versions.setdefault(api, set()).add(int(version))
        return versions

    def segments(self, topic, partition, node=None):
        """The log files of a partition, oldest first, of its only replica or of the one on `node`."""
        nodes = self.nodes if node is None else [node]
        found = [self._data_path(n) / f"{topic}-{partition}" for n in nodes]
        found = [path for path in found if path.is_dir()]
        if len(found) != 1:
            raise LookupError(f"{len(found)} replicas of {topic}-{partition} on nodes {list(nodes)}")
        return sorted(found[0].glob("*.log"))

    def _data_path(self, node):
        return self.directory / f"data-{node}"

    def _log_path(self, node):
        return self.directory / f"broker-{node}.log"

    def _properties_path(self, node):
        return self.directory / f"node-{node}.properties"

    # --- Life of the nodes ---

    def launch(self):
        """Starts all nodes and returns at once; wait_ready does the waiting."""
        kafka_jars.get(self.version)
        self.directory = temporary_directory("mirrorpid-kafka-")
        (self.directory / "log4j.properties").write_text(_LOG4J_1 + _REQUESTS_1 * self.log_requests)
        (self.directory / "log4j2.properties").write_text(_LOG4J_2 + _REQUESTS_2 * self.log_requests)
        self._ports = {node: ports.free_ports() for node in self.nodes}
        self._controller_ports = {node: ports.free_ports() for node in self.controllers}
        for node in self.nodes:
            self._write_properties(node)
            self._processes[node] = self._spawn(node, with_format=True)

    def wait_ready(self):
        """Returns when every node lists all of them. Ports that somebody else took meanwhile are chosen anew."""
        for attempt in range(_START_ATTEMPTS):
            try:
                for node in self.nodes:
                    self._wait_for(node)
                return
            except _PortTaken:
                if attempt + 1 == _START_ATTEMPTS:
                    raise
                self.close()
                self.launch()

    def close(self):
        """Kills all nodes and removes their files."""
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def is_running(self, node):
        return self._processes[node].exit_code is None

    def kill(self, node):
        """SIGKILL, as a machine that loses power."""
        self._processes[node].kill()

    def stop(self, node):
        """A clean shutdown."""
        self._processes[node].terminate(_READY_TIMEOUT)

    def start(self, node):
        """Starts a node again, with its port and its files, and waits until it knows the running ones."""
        self._processes[node] = self._spawn(node, with_format=False)
        self._wait_for(node)

    def move(self, node):
        """Starts a node that has been stopped, with its files, at another port."""
        self._ports[node] = ports.free_ports()
        self._write_properties(node)
        self.start(node)

    def add(self, node):
        """Starts a further node, a broker alone."""
        self.nodes.append(node)
        self._ports[node] = ports.free_ports()
        self._write_properties(node)
        self._processes[node] = self._spawn(node, with_format=True)
        self._wait_for(node)

    def remove(self, node):
        """Stops a node for good."""
        self.stop(node)
        self.nodes.remove(node)

    def _write_properties(self, node):
        properties = "".join(f"{name}={value}\n" for name, value in self._properties(node).items())
        self._properties_path(node).write_text(properties)

    def _spawn(self, node, with_format):
        logging = [f"-Dlog4j.configuration=file:{self.directory}/log4j.properties"]
        logging += [f"-Dlog4j2.configurationFile={self.directory}/log4j2.properties"]
        run = [kafka_jars.java(), "-Xms96m", "-Xmx384m", *_JVM, *logging, "-cp", self._class_path()]
        server = [*run, "kafka.Kafka", str(self._properties_path(node))]
        if with_format:
            tool = [*run, "kafka.tools.StorageTool", "format", "-t", self.cluster_id]
            tool += ["-c", str(self._properties_path(node)), *self.format_arguments]
            # Both in one child, so that all nodes format at the same time and the pid is the broker's in the end.
            shell = 'n=$1; shift; "${@:1:n}" && exec "${@:n+1}"'
            server = ["bash", "-c", shell, "bash", str(len(tool)), *tool, *server]
        return Process(server, self._log_path(node))

    def _class_path(self):
        return f"{kafka_jars.get(self.version)}/*"

    def _properties(self, node):
        is_controller = node in self.controllers
        plain = f"PLAINTEXT://127.0.0.1:{self._ports[node]}"
        controller = f",CONTROLLER://127.0.0.1:{self._controller_ports[node]}" if is_controller else ""
        copies = min(len(self.nodes), 3)
        return {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": node,
            "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{p}" for n, p in self._controller_ports.items()),
            "listeners": plain + controller,
            "advertised.listeners": plain,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": self._data_path(node),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": 1,
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "num.network.threads": 2,
            "num.io.threads": 2,
            "log.cleaner.dedupe.buffer.size": 8 << 20,
            "log.segment.bytes": 16 << 20,
            "log.retention.ms": -1,  # the tests' own batches are dated years ago
            "log.index.size.max.bytes": 1 << 20,
            **self.extra,
        }

    def _wait_for(self, node):
        process = self._processes[node]
        alive = list(filter(self.is_running, self.nodes))
        deadline = time.monotonic() + _READY_TIMEOUT
        why = ""
        while time.monotonic() < deadline:
            if process.exit_code is not None:
                if "Address already in use" in process.log():
                    raise _PortTaken(f"node {node}: a port was taken\n{process.log_tail()}")
                raise RuntimeError(f"node {node} ended: exit code {process.exit_code}\n{process.log_tail()}")
            try:
                listed = {broker["broker_id"] for broker in self.describe(node)["brokers"]}
                if listed.issuperset(alive):
                    return
                why = f"it lists nodes {sorted(listed)}"
            except (OSError, kafka_wire.WireError) as error:
                why = repr(error)
            time.sleep(0.1)
        raise TimeoutError(f"node {node} is not ready after {_READY_TIMEOUT} s, {why}\n{process.log_tail()}")

    # --- Questions and tools ---

    def describe(self, node=1):
        with self.connect(node, timeout=5) as connection:
            return connection.call("DescribeCluster", 0)

    def create_topic(self, name, partitions=1, configs=None, leaders=None, replication_factor=1):
        """Makes a topic and waits until every running node knows its leaders. `leaders` names the first replica of each
        partition; by default they go round where a partition has one replica, and are Kafka's choice where it has
        more."""
        nodes = list(self.nodes)
        topic = {"name": name, "configs": [{"name": k, "value": str(v)} for k, v in (configs or {}).items()]}
        if replication_factor == 1:
            leaders = leaders or [nodes[partition % len(nodes)] for partition in range(partitions)]
        if leaders:
            topic["assignments"] = [
                {"partition_index": partition, "broker_ids": sorted(nodes, key=leader.__ne__)[:replication_factor]}
                for partition, leader in enumerate(leaders)
            ]
        else:
            topic.update(num_partitions=partitions, replication_factor=replication_factor)
        with self.connect() as connection:
            result = connection.call("CreateTopics", 5, {"topics": [topic]})["topics"][0]
        if result["error_code"]:
            raise RuntimeError(f"topic {name}: error {result['error_code']} {result['error_message']}")
        for node in self.nodes:
            if self.is_running(node):
                wait_until(lambda: self._knows(node, name, partitions), _READY_TIMEOUT, f"topic {name} on node {node}")

    def metadata(self, topic, node=1):
        with self.connect(node) as connection:
            return connection.call("Metadata", 12, {"topics": [{"name": topic}]})["topics"][0]

    def leaders(self, topic):
        """{partition: node}"""
        return {p["partition_index"]: p["leader_id"] for p in self.metadata(topic)["partitions"]}

    def _knows(self, node, topic, partitions):
        entry = self.metadata(topic, node)
        known = [p for p in entry["partitions"] if p["error_code"] == 0]
        if entry["error_code"] or len(known) != partitions:
            return False
        # A leader learns of its partition a moment after the rest of the node does.
        mine = [p["partition_index"] for p in known if p["leader_id"] == node]
        return all(self.end_offset(topic, partition, node) is not None for partition in mine)

    def end_offset(self, topic, partition, node=None):
        """The high watermark of a partition, asked of its leader; None where that is no leader (yet)."""
        node = node or self.leaders(topic)[partition]
        question = {"topics": [{"name": topic, "partitions": [{"partition_index": partition, "timestamp": -1}]}]}
        with self.connect(node) as connection:
            answer = connection.call("ListOffsets", 6, question)["topics"][0]["partitions"][0]
        return answer["offset"] if answer["error_code"] == 0 else None

    def tool(self, name, *arguments, timeout=_TOOL_TIMEOUT):
        """Runs a command line tool (3 to 5 s: it is a JVM) and returns what it printed."""
        command = [kafka_jars.java(), "-Xmx256m", *_JVM, "-Dlog4j2.level=WARN", "-cp", self._class_path()]
        command += [kafka_jars.tool_class(self.version, name), *map(str, arguments)]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout
        )
        output = done.stdout.decode(errors="replace")
        if done.returncode != 0:
            raise RuntimeError(f"{name}: exit code {done.returncode}\n{output[-3000:]}")
        return output

    def dump_logs(self, partitions):
        """{(topic, partition): [batch, ...]} as DumpLogSegments prints them, by one run of the tool for all of them."""
        files = {key: self.segments(*key) for key in partitions}
        paths = ",".join(str(path) for segments in files.values() for path in segments)
        dumped = _parse_dump(self.tool("DumpLogSegments", "--files", paths))
        return {key: [entry for path in segments for entry in dumped[str(path)]] for key, segments in files.items()}

    def dump_log(self, topic, partition):
        return self.dump_logs([(topic, partition)])[topic, partition]

    def raw_batches(self, topic, partition, node=None):
        """The batches of a partition as they stand on disk."""
        return [b for path in self.segments(topic, partition, node) for b in kafka_batch.split(path.read_bytes())]


class _PortTaken(RuntimeError):
    pass


def start_all(clusters):
    """Starts clusters at the same time; when one fails, none is left behind."""
    with contextlib.ExitStack() as stack:
        for cluster in clusters:
            stack.callback(cluster.close)
            cluster.launch()
        for cluster in clusters:
            cluster.wait_ready()
        stack.pop_all()
