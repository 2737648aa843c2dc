"""Commands in processes of their own that share one start of the interpreter.

Reads a JSON list of argument lists from standard input, runs `mixsweep` with each in a fork, and
prints a JSON list of [exit code, standard output, standard error].
"""

import json
import os
import sys
import tempfile
from typing import NoReturn


def main() -> None:
    """Run all commands, one after another."""
    from sweeps import cli

    ran = []
    for arguments in json.load(sys.stdin):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if child == 0:
                _become(arguments, out.fileno(), err.fileno(), cli)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = []
            for file in (out, err):
                file.seek(0)
                said.append(file.read().decode())
            ran.append((code, *said))
    json.dump(ran, sys.stdout)


def _become(arguments: list[str], out: int, err: int, cli: object) -> NoReturn:
    os.setsid()
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.argv = ["mixsweep", *arguments]
    try:
        cli.main()  # type: ignore[attr-defined]
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)
    os._exit(0)


if __name__ == "__main__":
    main()
