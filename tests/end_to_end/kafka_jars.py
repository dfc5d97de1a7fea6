"""Kafka as a class path: the jars of a version from Maven, kept outside the build tree, so that a clean checkout does
not fetch them again. Without a Maven repository the tests that need them are skipped, and say why."""

import contextlib
import fcntl
import functools
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import zipfile

_POM = pathlib.Path(__file__).with_name("pom.xml")
_MAVEN_TIMEOUT = 300  # seconds: 25 on a quiet machine
_CONNECT_TIMEOUT = 20_000  # ms
_failures = {}  # version and profiles: why; asking again would only repeat the wait


def java():
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def _cache():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(os.environ.get("MIRRORPID_KAFKA_CACHE") or pathlib.Path(base) / "mirrorpid" / "kafka")


@contextlib.contextmanager
def lock(path):
    """Held by one process at a time."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(version, profiles, directory):
    """Why it failed, or None."""
    for program in ("mvn", java()):
        if not shutil.which(program):
            return f"{program} is not installed"
    shutil.rmtree(directory, ignore_errors=True)  # what an interrupted run left
    command = ["mvn", "-q", "-B", "-f", _POM, "dependency:copy-dependencies", f"-Dkafka.version={version}"]
    command += [f"-P{','.join([f'log-{version[0]}', *profiles])}", "-DincludeScope=runtime", f"-DoutputDirectory={directory}"]
    command += [f"-Daether.connector.connectTimeout={_CONNECT_TIMEOUT}"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_MAVEN_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return f"Maven did not answer within {_MAVEN_TIMEOUT} s"
    if done.returncode != 0:
        errors = re.findall(r"\[ERROR\][^\n]*", done.stdout.decode(errors="replace"))
        return f"Maven could not bring it: {errors[0] if errors else done.stdout.decode(errors='replace')[-300:]}"
    return None


def get(version, *profiles):
    """The directory with the jars of a Kafka version, and of what profiles of the POM add to it; SkipTest where they
    cannot be had."""
    cache = _cache()
    cache.mkdir(parents=True, exist_ok=True)
    name = "-".join([version, *profiles])
    directory = cache / name
    complete = directory / ".complete"
    if complete.exists():
        return directory
    with lock(cache / f"{name}.lock"):
        if not complete.exists():
            if name not in _failures:
                _failures[name] = _fetch(version, profiles, directory)
            if _failures[name]:
                raise unittest.SkipTest(f"no Kafka {name}: {_failures[name]}")
            complete.touch()
    return directory


@functools.lru_cache(maxsize=None)
def tool_class(version, name):
    """The class of a command line tool: they moved from package to package over the versions."""
    pattern = re.compile(rf"(?:org/apache/kafka/tools|kafka/(?:tools|admin))/(?:.*/)?{name}\.class")
    found = []
    for jar in get(version).glob("kafka*.jar"):
        with zipfile.ZipFile(jar) as archive:
            found += [entry for entry in archive.namelist() if pattern.fullmatch(entry)]
    if not found:
        raise LookupError(f"Kafka {version} has no tool {name}")
    return max(found).removesuffix(".class").replace("/", ".")  # org.* is the newer home, where both are there
