"""The programs of ours that these tests run, beside the mirrorpid that is tested."""

import json
import os
import subprocess

from tests.end_to_end import kafka_jars
from tests.support import mirrorpid

_TIMEOUT = 300  # seconds


def _path(variable, relative):
    path = os.environ.get(variable) or mirrorpid.program().parent / relative
    if not os.access(path, os.X_OK):
        raise FileNotFoundError(f"{path} is not built: cmake --build --preset release")
    return str(path)


def check_built():
    """Fails before anything has been started where a program is missing."""
    _kafka_client()
    _verbatim_mirror()
    if not os.access(mirrorpid.program(), os.X_OK):
        raise FileNotFoundError(f"{mirrorpid.program()} is not built: cmake --build --preset release")


def _kafka_client():
    return _path("KAFKA_CLIENT", "tests/end_to_end/kafka_client")


def _verbatim_mirror():
    return _path("VERBATIM_MIRROR", "tests/support/verbatim_mirror")


def _run_all(commands, exit_codes=(0,)):
    """Runs commands at the same time; each prints a line of JSON."""
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for command in commands
    ]
    try:
        outputs = [process.communicate(timeout=_TIMEOUT) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.wait()
    for process, (out, err) in zip(running, outputs):
        if process.returncode not in exit_codes:
            text = (out + err).decode(errors="replace")
            raise AssertionError(f"{' '.join(process.args)}: exit code {process.returncode}\n{text[-4000:]}")
    return [json.loads(out) for out, _ in outputs]


def endpoint(address):
    host, port = address
    return f"{host}:{port}"


def load_command(address, topic, codec, records, partitions, seed, **options):
    """`options` by the names of the command line: transactional_id, transaction_records, abort_every."""
    command = [_kafka_client(), "load", "--bootstrap", endpoint(address), "--topic", topic, "--codec", codec]
    command += ["--records", str(records), "--partitions", str(partitions), "--seed", str(seed)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    return command


def load(*commands):
    """Runs loads at the same time."""
    return _run_all(commands)


def consume(address, topic, isolation="read_uncommitted"):
    """Reads a topic to its end and checks every CRC on the way: records and a hash for each partition."""
    command = [_kafka_client(), "consume", "--bootstrap", endpoint(address), "--topic", topic, "--check-crcs"]
    return _run_all([command + ["--isolation", isolation]])[0]


def run_java(jars, program, *arguments):
    """Compiles and runs a program that is one file; what it prints."""
    command = [kafka_jars.java(), "-Xmx256m", "-cp", f"{jars}/*", str(program), *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT)
    if done.returncode != 0:
        raise AssertionError(f"{program.name} {arguments}: exit code {done.returncode}\n{done.stderr[-4000:]}")
    return done.stdout


def mirror(*routes, may_be_refused=False):
    """Mirrors routes (from address, to address, topic, destination topic) verbatim, all at the same time."""
    commands = [
        [_verbatim_mirror(), "--from", endpoint(origin), "--to", endpoint(target), "--topic", topic]
        + ["--to-topic", to_topic, "--transactional-id", "mirror"]
        for origin, target, topic, to_topic in routes
    ]
    return _run_all(commands, exit_codes=(0, 1) if may_be_refused else (0,))
