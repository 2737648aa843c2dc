"""Warm server: imports modules once, then forks a process for each command that a client sends.

Arguments: the folder of its socket, and a function to call first. It ends with its standard input.
"""

import atexit
import faulthandler
import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from sweeps.machine.arguments import read_names_as_utf8
from sweeps.running.cluster_address import close_environment, is_elsewhere, set_tune_variables
from tests.soak.warm import ASKED, NEEDED, called


def main() -> None:
    """Serve until standard input ends."""
    read_names_as_utf8()
    place, first = sys.argv[1:]
    before = dict(os.environ)
    os.environ.update(MPLBACKEND="agg", MATPLOTLIBRC=os.devnull)
    if sys.warnoptions:
        warnings.simplefilter("ignore")  # as the command does
    for module in NEEDED:
        with suppress(Exception):  # the command imports it again and says what is wrong
            importlib.import_module(module)
    if first:
        called(first)
    gc.freeze()  # a collection in a fork would copy every page that was imported
    # What importing sets is part of what a command is: that its cluster is closed to others.
    needed = {name: value for name, value in os.environ.items() if before.get(name) != value}
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(Path(place) / "socket"))
    (Path(place) / "socket").chmod(0o777)
    listener.listen()
    print("ready", flush=True)  # noqa: T201
    Server(listener=listener, needed=needed).serve()


class Server:
    """Forks commands and tells their exit codes."""

    def __init__(self, *, listener: socket.socket, needed: Mapping[str, str]) -> None:
        self._listener = listener
        self._needed = needed
        self._clients: dict[int, socket.socket] = {}

    def serve(self) -> None:
        """Answer clients until standard input ends."""
        woken, waker = socket.socketpair()
        waker.setblocking(False)
        signal.set_wakeup_fd(waker.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        with selectors.DefaultSelector() as selector:
            for file in (woken, self._listener, sys.stdin):
                selector.register(file, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if sys.stdin in ready:
                    return
                if woken in ready:
                    woken.recv(4096)
                self._tell_ended()
                if self._listener in ready:
                    self._start(self._listener.accept()[0])

    def _start(self, client: socket.socket) -> None:
        _, files, _, _ = socket.recv_fds(client, 1, 3)
        request = json.loads(client.makefile("rb").readline())
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                _become(request, dict(zip(request["streams"], files, strict=True)), self._needed)
            except BaseException:
                traceback.print_exc()
            os._exit(1)
        for file in files:
            os.close(file)
        self._clients[pid] = client
        client.sendall(b"%d\n" % pid)

    def _tell_ended(self) -> None:
        while self._clients:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            if (client := self._clients.pop(pid, None)) is not None:
                with client:
                    client.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _become(
    request: Mapping[str, Any], streams: Mapping[int, int], needed: Mapping[str, str]
) -> NoReturn:
    os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(needed | request["environment"])
    if is_elsewhere():  # what a command does before it imports Ray, which is imported here
        set_tune_variables(os.environ)
    else:
        close_environment(os.environ)
        os.environ.update(needed)
    atexit.unregister(shutil.rmtree)  # scratch folders of imported modules are the server's
    tempfile.tempdir = None
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number in (0, 1, 2):
        if (file := {0: nothing, **streams}.get(number)) is None:
            os.close(number)
        else:
            os.dup2(file, number)
    for file in {nothing, *streams.values()} - {0, 1, 2}:
        os.close(file)
    _open_streams(streams)
    sys.addaudithook(_stay)
    sys.argv = ["mixsweep", *request["arguments"]]
    sys.orig_argv[:] = [sys.executable, "-m", "mixsweep", *request["arguments"]]
    if request["then"]:
        called(request["then"])
    _run()


def _open_streams(streams: Mapping[int, int]) -> None:
    """Set `sys.stdout` and `sys.stderr` as an interpreter does that starts with these files."""
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = None
        if number in streams:
            usual = "strict" if number == 1 else "backslashreplace"
            stream = open(  # noqa: SIM115  a number
                number, "w", encoding=encoding, errors=errors or usual, closefd=False
            )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if 2 in streams:
        faulthandler.register(ASKED, file=2, chain=False)


def _run() -> NoReturn:
    """Run the command and exit as the interpreter would, without tearing down all modules."""
    from mixsweep.cli.main import main as command

    code = 1
    try:
        command()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        traceback.print_exc()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(code)


def _stay(event: str, arguments: Sequence[object]) -> None:
    """End a process that is about to become another program."""
    if event == "os.exec":
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
