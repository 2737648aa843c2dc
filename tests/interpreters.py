"""Interpreters: Python code that a test runs in a process of its own."""

import subprocess
import sys
import textwrap
from typing import Any


def run_python(
    code: str, *arguments: object, timeout: float = 240, check: bool = False, **options: Any
) -> "subprocess.CompletedProcess[str]":
    """Run code to its end, with arguments and options of `subprocess.run`; capture its output."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, check=check, **options
    )


def start_python(code: str, *arguments: object, **options: Any) -> "subprocess.Popen[str]":
    """Start code, with arguments and options of `subprocess.Popen`; its output is a pipe."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
