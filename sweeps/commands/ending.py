"""Ending: the user's shell command that runs after a command, however that has ended."""

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
    """The shell command to run at the end, and the facts that it receives.

    It is the object of click's context.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables with which this process was started."""
    command: str | None = None
    """Shell command to run at the end; None for no command."""
    study: str = ""
    report: Path | None = None
    """Folder of the report that was written; None if no report was written."""
    leaves_files: bool = False
    """True if the result of the command is in files and the printed text only repeats it."""
    has_trained: bool = False
    """True if the process has imported the modules that train."""

    def close(self, code: int) -> int:
        """Run the command with MIXSWEEP_STUDY, _EXIT_CODE and _REPORT in its environment.

        Its output goes to stderr. If it fails, a message is printed and the exit code stays the
        same. An interrupt ends the command and all processes that it started.

        Args:
            code: Exit code of the command that has ended.

        Returns:
            The exit code of this process: `code`, or `INTERRUPTED` after an interrupt.
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
            hear()  # the interrupt that ended the launch turned off the handler
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
