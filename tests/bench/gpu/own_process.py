"""Own process: calls a function in a new process, which ends when the calling process ends."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any

Result = dict[str, Any]
_CLEANUP = 10.0
"""Longest wait, in seconds, for the cleanup of a function that is interrupted."""


def in_own_process(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function in a new process and return its result.

    An exception of the function is returned as `{"failed": text}`. If the calling process is
    interrupted or ends, the function is interrupted too.

    Args:
        function: Function of a module, so that it can be pickled.
        arguments: Its arguments, which must be picklable.

    Raises:
        RuntimeError: If the new process ends without a result.
    """
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(sender, function, arguments))
    with receiver:
        with sender, _safe_imports():
            process.start()
        try:
            result: Result = receiver.recv()
        except EOFError:
            process.join()
            raise RuntimeError(
                f"the process of {function.__name__} ended with exit code {process.exitcode}."
            ) from None
        except BaseException:
            process.terminate()
            process.join(_CLEANUP)
            process.kill()
            raise
    process.join()
    return result


@contextmanager
def _safe_imports() -> Iterator[None]:
    """Keep processes that start during the block from importing files of the working directory.

    Python imports a part of `multiprocessing` there before it gets the search path of this process.
    """
    name = "PYTHONSAFEPATH"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before


def _send(sender: Connection, function: Callable[..., Result], arguments: tuple[object]) -> None:
    """Call a function in the new process, and send its result."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both processes; one is enough
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt, BrokenPipeError), sender:
        try:
            result = function(*arguments)
        except Exception as error:  # the caller reports it
            result = {"failed": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
        sender.send(result)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
