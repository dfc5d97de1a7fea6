"""Child processes and temporary directories of tests. Processes are ended by their pid, and neither is left behind,
also when the test run is interrupted."""

import atexit
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

_running = set()
_directories = []


@atexit.register
def _clean_up():
    for process in list(_running):
        process.kill()
    for directory in _directories:
        shutil.rmtree(directory, ignore_errors=True)


signal.signal(signal.SIGTERM, signal.default_int_handler)  # as ^C: an exit that runs the line above


def temporary_directory(prefix):
    """A directory that is removed when the test run ends, if nobody did it before."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
    _directories.append(directory)
    return directory


def wait_until(condition, seconds, what):
    """Polls until `condition` returns something true, and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.05)


class Process:
    """A child whose stdout and stderr go to files. The kernel ends it when the thread that started it ends, however
    that happens (setpriv, from util-linux), so start it on the main thread."""

    def __init__(self, command, log, stdout=None, env=None):
        self.command = [str(part) for part in command]
        self.log_path = pathlib.Path(log)
        with open(log, "ab") as stderr, open(stdout or log, "ab") as out:
            self._popen = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=stderr,
                env=env,
                start_new_session=True,  # ^C in a terminal reaches the test alone, which then cleans up
            )
        _running.add(self)

    @property
    def pid(self):
        return self._popen.pid

    @property
    def exit_code(self):
        """None while it runs, -N when signal N ended it."""
        return self._popen.poll()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def log_tail(self, lines=40):
        return "\n".join(self.log().splitlines()[-lines:])

    def send_signal(self, number):
        self._popen.send_signal(number)

    def wait(self, seconds):
        exit_code = self._popen.wait(seconds)
        _running.discard(self)
        return exit_code

    def terminate(self, seconds=60):
        """SIGTERM; what does not end in time is killed, and that is an error."""
        if self.exit_code is None:
            self._popen.terminate()
            try:
                self._popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.kill()
                text = f"still there {seconds} s after SIGTERM: {self.command[0]}\n{self.log_tail()}"
                raise TimeoutError(text) from None
        _running.discard(self)
        return self.exit_code

    def kill(self):
        """SIGKILL, and gone when this returns."""
        if self.exit_code is None:
            self._popen.kill()
            self._popen.wait()
        _running.discard(self)
        return self.exit_code
