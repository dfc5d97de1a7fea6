"""The clients of other people that do the job of clients/README.md: how each is built or installed, and run.

What registries bring is kept outside of the build tree, so that a clean checkout does not fetch it again. A client whose
language or registry is not there is skipped, and says why.
"""

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

from tests.end_to_end import kafka_jars
from tests.support import mirrorpid
from tests.support.process import temporary_directory

_SOURCES = pathlib.Path(__file__).with_name("clients")
_INSTALL_TIMEOUT = 600  # seconds
_JOB_TIMEOUT = 240
_outcomes = {}  # of an installation, by what is installed: (directory, why not)


def _cache(name):
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "mirrorpid" / "clients" / name


def _why_not(command):
    """Runs a step of an installation: why it failed, or None."""
    program = command[0]
    if not shutil.which(program):
        return f"{program} is not installed"
    what = " ".join(pathlib.Path(part).name for part in command[:3])
    try:
        done = subprocess.run(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_INSTALL_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return f"{what} did not end within {_INSTALL_TIMEOUT} s"
    if done.returncode == 0:
        return None
    lines = done.stdout.decode(errors="replace").strip().split("\n")
    told = next((line for line in lines if "error" in line.lower()), lines[-1])
    return f"{what} failed: {told.strip()[:200]}"


def _once(name, steps):
    """Installs into a directory of the cache what `steps(directory)` yields commands for, and returns it."""
    if name not in _outcomes:
        directory = _cache(name)
        directory.parent.mkdir(parents=True, exist_ok=True)
        complete = directory / ".complete"
        why = None
        with kafka_jars.lock(directory.with_name(f"{name}.lock")):
            if not complete.exists():
                shutil.rmtree(directory, ignore_errors=True)  # what an interrupted run left
                directory.mkdir()
                why = next(filter(None, (_why_not(command) for command in steps(directory))), None)
                if not why:
                    complete.touch()
        _outcomes[name] = directory, why
    directory, why = _outcomes[name]
    if why:
        raise unittest.SkipTest(why)
    return directory


def _require(command, at_least):
    """Skips where a language is missing or older than what its programs need."""
    if not shutil.which(command[0]):
        raise unittest.SkipTest(f"{command[0]} is not installed")
    printed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True).stdout.decode()
    found = re.search(r"\d+\.\d+", printed)
    if not found or tuple(map(int, found[0].split("."))) < at_least:
        raise unittest.SkipTest(f"{printed.strip()} is older than {'.'.join(map(str, at_least))}")


class Client:
    """`name` and `version` are for people; the name with dashes is in the names of what it makes at the broker."""

    has_transactions = True
    fences_the_second = False

    def __init__(self, name, version, is_short=False, group_protocol="classic"):
        self.name = name
        self.version = version
        self.is_short = is_short  # one of those that every run takes
        self.group_protocol = group_protocol

    @property
    def key(self):
        protocol = "" if self.group_protocol == "classic" else f"-{self.group_protocol}"
        return f"{self.name}-{self.version}{protocol}".replace(" ", "-").replace("/", "-").replace("@", "").lower()

    @property
    def title(self):
        protocol = "" if self.group_protocol == "classic" else f", group protocol {self.group_protocol}"
        return f"{self.name} {self.version}{protocol}"

    def command(self, task):
        """Installs what is missing, and returns the command line of the job; SkipTest where it cannot be had."""
        return [*self.program(), json.dumps({**task, "group_protocol": self.group_protocol})]

    def program(self):
        raise NotImplementedError


class Java(Client):
    _classes = None

    def program(self):
        jars = kafka_jars.get(self.version)
        if Java._classes is None:
            directory = temporary_directory("mirrorpid-java-")
            compile_with = kafka_jars.get("3.9.2")  # what is in this one is in the newer ones, too
            why = _why_not(["javac", "-cp", f"{compile_with}/*", "-d", directory, _SOURCES / "java" / "Job.java"])
            if why:
                raise unittest.SkipTest(why)
            Java._classes = directory
        return [kafka_jars.java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
                f"{Java._classes}:{jars}/*", "Job"]  # fmt: skip


class Librdkafka(Client):
    def command(self, task):
        program = mirrorpid.program().parent / "tests" / "end_to_end" / "librdkafka_job"
        if not os.access(program, os.X_OK):
            raise FileNotFoundError(f"{program} is not built: cmake --build --preset release")
        return [str(program), *(str(task[n]) for n in ("name", "bootstrap", "partitions", "replication", "records"))]


class Go(Client):
    def __init__(self, folder, *args, **options):
        super().__init__(*args, **options)
        self._folder = folder

    def program(self):
        _require(["go", "version"], (1, 26))
        sources = sorted(path for path in (_SOURCES / "go").rglob("*") if path.is_file())
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]
        build = ["env", "GOTOOLCHAIN=local", "go", "build", "-C", _SOURCES / "go"]  # not with another Go, which it fetches
        directory = _once(f"go-{digest}", lambda d: [[*build, "-o", d, "./..."]])
        return [str(directory / self._folder)]


class KafkaGo(Go):
    has_transactions = False


class Python(Client):
    def __init__(self, script, package, *args, **options):
        super().__init__(*args, **options)
        self._script = script
        self._package = package

    def program(self):
        def steps(directory):
            yield [sys.executable, "-m", "venv", directory]
            yield [directory / "bin" / "pip", "install", "--quiet", f"{self._package}=={self.version}"]

        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        directory = _once(f"python{version}-{self._package}-{self.version}", steps)
        return [str(directory / "bin" / "python"), str(_SOURCES / self._script)]


class JavaScript(Client):
    def __init__(self, script, *args, node=18, **options):
        super().__init__(*args, **options)
        self._script = script
        self._node = node

    def program(self):
        _require(["node", "--version"], (self._node, 0))
        package = f"{self.name}@{self.version}"
        install = ["npm", "install", "--no-fund", "--no-audit", "--loglevel=error"]
        directory = _once(f"npm-{self.key}", lambda d: [[*install, "--prefix", d, package]])
        # Modules are looked for beside the program that imports them.
        beside = temporary_directory("mirrorpid-js-")
        shutil.copytree(_SOURCES / "js", beside, dirs_exist_ok=True)
        (beside / "node_modules").symlink_to(directory / "node_modules")
        return ["node", str(beside / self._script)]


class Platformatic(JavaScript):
    fences_the_second = True


def _installed_librdkafka():
    try:
        done = subprocess.run(["pkg-config", "--modversion", "rdkafka"], capture_output=True, check=True)
        return done.stdout.decode().strip()
    except (OSError, subprocess.CalledProcessError):
        return "installed"


def all_clients():
    return [
        Java("Java", "4.4.0", is_short=True),
        Java("Java", "4.4.0", group_protocol="consumer"),
        Java("Java", "3.9.2", is_short=True),
        Librdkafka("librdkafka", _installed_librdkafka(), is_short=True),
        Python("confluent_job.py", "confluent-kafka", "confluent-kafka", "2.16.1"),
        Python("confluent_job.py", "confluent-kafka", "confluent-kafka", "2.16.1", group_protocol="consumer"),
        Go("franz", "franz-go", "1.22.3"),
        Go("sarama", "Sarama", "1.61.1"),
        KafkaGo("kafkago", "segmentio/kafka-go", "0.4.51"),
        Python("kafka_python_job.py", "kafka-python", "kafka-python", "3.0.12"),
        Python("aiokafka_job.py", "aiokafka", "aiokafka", "0.14.0"),
        JavaScript("kafkajs_job.mjs", "kafkajs", "2.2.4"),
        Platformatic("platformatic_job.mjs", "@platformatic/kafka", "1.35.0", node=20),
    ]


def run_together(*commands):
    """Runs jobs at the same time; the result of each."""
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for command in commands
    ]
    outputs = []
    try:
        for process in running:
            outputs.append(process.communicate(timeout=_JOB_TIMEOUT))
    except subprocess.TimeoutExpired:
        pass
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    results = []
    for process, (out, err) in zip(running, outputs):
        if process.returncode:
            text = (out[-500:] + err).decode(errors="replace")
            raise AssertionError(f"{process.args}: exit code {process.returncode}\n{text[-4000:]}")
        results.append(json.loads(out.splitlines()[-1]))  # Java may log to stdout, before it
    if len(results) < len(commands):
        raise AssertionError(f"{commands[len(results)]}: did not end within {_JOB_TIMEOUT} s")
    return results
