"""Ending: what is done when a command has ended, whatever ended it."""

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

import click


@dataclass(kw_only=True, slots=True)
class Ending:
    """The command that a user wants to be run then; the object of a click context."""

    command: str | None = None
    """For a shell; None is nothing."""
    study: str = ""
    report: Path | None = None
    """Folder of the report that was written; None if none was."""
    has_trained: bool = False
    """Whether the process has loaded all that trains."""

    def close(self, code: int) -> None:
        """Run the command with MIXSWEEP_STUDY, _EXIT_CODE and _REPORT in its environment.

        What it prints goes to stderr. That it fails is said, and changes nothing else.

        Args:
            code: Exit code of the command that has ended.
        """
        if self.command is None:
            return
        told = {
            "MIXSWEEP_STUDY": self.study,
            "MIXSWEEP_EXIT_CODE": str(code),
            "MIXSWEEP_REPORT": "" if self.report is None else str(self.report.resolve()),
        }
        shell = ["/bin/sh", "-c", self.command]
        try:
            failed = subprocess.run(shell, env={**os.environ, **told}, check=False, stdout=2)
            reason = f"exited with {failed.returncode}" if failed.returncode else ""
        except OSError as error:
            reason = error.strerror or str(error)
        if reason:
            click.echo(f"--on-finish {shlex.quote(self.command)} {reason}", err=True)
