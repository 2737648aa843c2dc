"""Apart: launches a study with Ray in a process of its own, not in that of the caller.

Ray ends the process that uses it when its cluster dies, and an interrupted launch ends all its
child processes. Both happen in the new process, which ends soon after the caller has ended.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, NoReturn

from mixsweep.launching.launch import LaunchOptions, OnEpoch, launch
from mixsweep.request import BAD_INPUT, DONE, RefusedError, Request
from mixup_core.plugins.loading import use
from sweeps.machine.home import Home
from sweeps.machine.watchdog import LOST
from sweeps.running.head import HeadLostError

_TO_END = 30.0
"""Seconds that an interrupted launch has to store its epochs and end; longer than it needs."""
_TO_FORWARD = 5.0
"""Longest wait for the last message of a launch that has ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """A launch in a form that another process can read: names, addresses and options."""

    study: str | Mapping[str, Any]
    """Name or file of the study, or its keys."""
    overrides: tuple[str, ...]
    plugins: tuple[str, ...]
    """Plugin files that are loaded in this process."""
    home: Home
    options: LaunchOptions


def launch_apart(order: Order, on_epoch: OnEpoch | None = None) -> None:
    """Launch a study in a new process and wait for its end; its messages go to `sys.stderr`.

    That process sends each epoch to this one, which calls `on_epoch`.
    """
    reader, writer = os.pipe()
    command = [sys.executable, "-P", "-c", f"from {__name__} import main; main({writer})"]
    paths = dict.fromkeys([*filter(None, sys.path), str(Path(__file__).parents[1])])
    process = subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[writer],
        start_new_session=True,  # Ctrl-C in a terminal reaches this process alone, which sends it
    )  # fmt: skip
    os.close(writer)
    last = [""]
    forwarding = threading.Thread(target=_forward, args=[process.stderr, last], daemon=True)
    forwarding.start()
    try:
        with os.fdopen(reader, "rb") as answer:
            _send(process, order)
            error = _answered(answer, on_epoch)
        code = process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
    if error is not None:
        raise error
    if code in {-signal.SIGINT, 130}:
        raise KeyboardInterrupt
    if code != DONE:
        forwarding.join(_TO_FORWARD)
        message = last[0] or f"the process of the launch ended with code {code}"
        raise HeadLostError(message) if code == LOST else RefusedError(message)


def _answered(answer: IO[bytes], on_epoch: OnEpoch | None) -> Exception | None:
    """Pass on the epochs that the new process sends; return the error that ended it, or None."""
    while True:
        try:
            message = pickle.load(answer)  # noqa: S301  written by `main` below
        except (EOFError, pickle.UnpicklingError):  # it was killed, perhaps while it wrote
            return None
        if isinstance(message, Exception):
            return message
        if on_epoch is not None:
            arm, seed, epoch, metrics = message
            on_epoch(arm, seed, epoch, MappingProxyType(metrics))


def main(number: int) -> NoReturn:
    """Run a launch in this process, which `launch_apart` has started."""
    from mixsweep.cli.main import run_to_end

    os.set_inheritable(number, False)

    def train(ending: Any) -> int:
        ending.has_trained = ending.leaves_files = True
        answer = open(number, "wb", buffering=0)  # noqa: SIM115  open until this process ends

        def send(arm: str, seed: int, epoch: int, metrics: Mapping[str, float]) -> None:
            with suppress(OSError):
                answer.write(pickle.dumps((arm, seed, epoch, dict(metrics))))

        try:
            order = pickle.load(sys.stdin.buffer)  # noqa: S301  written by `launch_apart`
            threading.Thread(target=_end_with_caller, daemon=True).start()
            for plugin in order.plugins:
                use(plugin)
            request = Request.read(
                order.study, order.overrides, home=order.home, plugins=order.plugins
            )
            launch(request, order.options, on_epoch=send)
        except Exception as error:
            answer.write(_pickled(error))
            return BAD_INPUT
        return DONE

    run_to_end(train)


def _send(process: "subprocess.Popen[bytes]", order: Order) -> None:
    with suppress(BrokenPipeError):  # it has ended; its exit code says why
        if process.stdin is not None:
            pickle.dump(order, process.stdin)
            process.stdin.flush()


def _forward(lines: IO[bytes], last: list[str]) -> None:
    """Write the lines of the new process to `sys.stderr`; keep the last one in `last`."""
    with lines:
        for line in lines:
            sys.stderr.write(text := line.decode(errors="replace"))
            sys.stderr.flush()
            last[0] = text.strip() or last[0]


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a launch as Ctrl-C does; kill it if that takes too long, or on a second interrupt."""
    try:
        process.send_signal(signal.SIGINT)
        process.wait(_TO_END)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        process.kill()
        process.wait()


def _end_with_caller() -> None:
    """Wait for the end of the calling process, then interrupt this one."""
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def _pickled(error: Exception) -> bytes:
    """Return an error as bytes; one that cannot be read back is sent as `RefusedError`."""
    try:
        pickle.loads(content := pickle.dumps(error))  # noqa: S301  our own bytes
    except Exception:
        return pickle.dumps(RefusedError(str(error)))
    return content
