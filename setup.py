"""Build the package as pyproject.toml describes it, with a file that names its commit."""

import json
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_SOURCE = Path(__file__).resolve().parent


class BuildWithCommit(build_py):
    """Add `reports/built_from.json`, which `reports.numbers.code_origin.describe_code` reads."""

    def run(self) -> None:
        """Copy the packages, then write the commit to a file, if it is known."""
        super().run()
        code = _code()
        if code is not None and not self.editable_mode:
            noted = Path(self.build_lib, "reports", "built_from.json")
            noted.write_text(json.dumps(code, sort_keys=True) + "\n", encoding="utf-8")


def _code() -> dict[str, str | bool] | None:
    """Return commit, branch and whether tracked files differ from the commit; None without git."""
    if not (_SOURCE / ".git").exists():
        return None  # a repository in a parent folder belongs to another project
    try:
        commit, branch = (_git("rev-parse", *what) for what in (["HEAD"], ["--abbrev-ref", "HEAD"]))
        dirty = bool(_git("status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "branch": branch, "dirty": dirty}


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_SOURCE), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


setup(cmdclass={"build_py": BuildWithCommit})
