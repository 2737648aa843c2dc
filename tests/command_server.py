"""Command server: a process with everything imported, which runs each command in a fork of itself.

See `tests/forked_commands.py`.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


class CommandServer:
    """Runs commands one after another. The server process starts with the first command."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, arguments: Sequence[str], environment: Mapping[str, str], ids: Sequence[int] = ()
    ) -> tuple[int, str, str]:
        """Run a command; return exit code, standard output and standard error.

        Root may run it as another user: the ids of the user, of its group and of further groups.
        """
        if self._process is None:
            self._process = subprocess.Popen(
                [self._python, "-P", Path(__file__).with_name("forked_commands.py")],
                env=dict(environment), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        lines, answers = self._process.stdin, self._process.stdout
        request = {
            "arguments": arguments, "environment": environment, "folder": str(Path.cwd()),
            "ids": list(ids),
        }  # fmt: skip
        lines.write(json.dumps(request) + "\n")
        lines.flush()
        try:
            code, out, err = json.loads(answers.readline())
        except BaseException:  # a test that is cut must not leave its answer to the next one
            self._close()
            raise
        return code, out, err

    def _close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def __enter__(self) -> "CommandServer":
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()
