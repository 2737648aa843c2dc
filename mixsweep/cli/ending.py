"""Ending: run the shell command of `--on-finish` when `mixsweep` ends, also after an error."""

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
    """Facts that a command stores for the end of its process, such as the folder of its report.

    If `leaves_files` is true, lost output is no error. If `has_trained` is true, slow clean-up is
    skipped. The other fields are for the shell command of `--on-finish`. A command gets this object
    with `click.get_current_context().ensure_object(Ending)`.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """The environment variables with which this process was started."""
    command: str | None = None
    """Shell command of `--on-finish`; None for no command."""
    study: str = ""
    report: Path | None = None
    """Folder of the report that was written; None if no report was written."""
    leaves_files: bool = False
    """True if the command writes its result to files. It is then no error if its printed text is
    lost."""
    has_trained: bool = False
    """True if this process trained, and so imported modules that are slow to clean up."""

    def close(self, code: int) -> int:
        """Run the shell command of `--on-finish`, if there is one.

        The shell command gets MIXSWEEP_STUDY, MIXSWEEP_EXIT_CODE and MIXSWEEP_REPORT in its
        environment, and its output goes to stderr. If it fails, a message is printed and the exit
        code stays the same. An interrupt ends the shell command and all processes that it started.
        """
        if self.command is None:
            return code
        variables = {
            # Frozen: names that shell commands of users read;
            # tests/mixsweep/cli/test_ending.py fails.
            "MIXSWEEP_STUDY": self.study,
            "MIXSWEEP_EXIT_CODE": str(code),
            "MIXSWEEP_REPORT": "" if self.report is None else str(self.report.resolve()),
        }
        shell = ["/bin/sh", "-c", self.command]
        try:
            hear()  # the interrupt that ended the launch turned off the handler
            failed = subprocess.Popen(shell, env={**self.environment, **variables}, stdout=2).wait()
            reason = f"exited with {failed}" if failed else ""
        except KeyboardInterrupt:
            hear(leave)
            end_children()
            code, reason = INTERRUPTED, "was interrupted"
        except OSError as error:
            reason = f"could not be started ({error.strerror or error})"
        if reason:
            click.echo(f"--on-finish: the shell command {reason}", err=True)
        return code
