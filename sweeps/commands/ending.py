"""Ending: what is done when a command has ended, whatever ended it."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import click

from sweeps.machine.processes import end_children
from sweeps.machine.signals import INTERRUPTED, hear, leave


@dataclass(kw_only=True, slots=True)
class Ending:
    """The command that a user wants to be run then; the object of a click context."""

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment that the user has given this process."""
    command: str | None = None
    """Shell command to run at the end; None: no command."""
    study: str = ""
    report: Path | None = None
    """Folder of the report that was written; None if none was."""
    leaves_files: bool = False
    """True if the result of the command is in files, and its output only shows it."""
    has_trained: bool = False
    """True if the process has loaded all that trains."""

    def close(self, code: int) -> int:
        """Run the command with MIXSWEEP_STUDY, _EXIT_CODE and _REPORT in its environment.

        What it prints goes to stderr. That it fails is said, and changes nothing else. An interrupt
        ends it, with all that it has started.

        Args:
            code: Exit code of the command that has ended.

        Returns:
            The code with which this process is to end: that, or `INTERRUPTED`.
        """
        if self.command is None:
            return code
        told = {
            "MIXSWEEP_STUDY": self.study,
            "MIXSWEEP_EXIT_CODE": str(code),
            "MIXSWEEP_REPORT": "" if self.report is None else str(self.report.resolve()),
        }
        shell = ["/bin/sh", "-c", self.command]
        try:
            hear()  # an interrupt that ended the launch has made this process deaf to others
            failed = subprocess.Popen(shell, env={**self.environment, **told}, stdout=2).wait()
            reason = f"exited with {failed}" if failed else ""
        except KeyboardInterrupt:
            hear(leave)
            end_children()
            code, reason = INTERRUPTED, "was interrupted"
        except OSError as error:
            reason = error.strerror or str(error)
        if reason:
            click.echo(f"--on-finish: the command {reason}", err=True)
        return code
