"""Code origin: the commit of this program's code, for reports, MLflow and cluster jobs."""

import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import mixup_core
from mixup_core.numeric_settings import installed_version

_JOB_VARIABLE = "RAY_JOB_CONFIG_JSON_ENV_VAR"
_SENDER_VARIABLE = "MIXSWEEP_SENT_BY"
"""Environment variable with the version of mixsweep that submitted a cluster job."""

# Frozen: names that a submitting machine and a cluster of another version share, and keys of
# `provenance.json`; tests/reports/numbers/test_code_origin.py fails.
_CODE_VARIABLES = {
    "commit": "MIXSWEEP_COMMIT",
    "branch": "MIXSWEEP_BRANCH",
    "dirty": "MIXSWEEP_DIRTY",
}

SOURCE = Path(mixup_core.__file__).resolve().parent.parent
"""The folder that has the packages of this program."""
_BUILT_FROM = "reports/built_from.json"
"""File in which `setup.py` records the commit, for a package that is installed without its
repository.
"""


def describe_code() -> dict[str, Any] | None:
    """Return commit and branch of mixsweep's code, and whether it is modified; None if unknown."""
    if (SOURCE / ".git").exists():
        return _checkout()
    with suppress(OSError, ValueError):
        built: dict[str, Any] = json.loads((SOURCE / _BUILT_FROM).read_text(encoding="utf-8"))
        return built
    commit = os.environ.get(_CODE_VARIABLES["commit"])
    if commit is None:
        return None
    return {
        "commit": commit,
        "branch": os.environ.get(_CODE_VARIABLES["branch"]),
        "dirty": os.environ.get(_CODE_VARIABLES["dirty"]) == str(True),
    }


def _checkout() -> dict[str, Any] | None:
    commit = _git("rev-parse", "HEAD")
    if commit is None:
        return None
    tracked = (
        "--porcelain",
        "--untracked-files=no",
        "--ignore-submodules=all",
        "--",
        ":/",
        ":(top,exclude)reports/published",
    )
    return {
        "commit": commit,
        "branch": _git("rev-parse", "--abbrev-ref", "HEAD"),
        "dirty": bool(_git("status", *tracked)),
    }


def code_variables(code: Mapping[str, Any]) -> dict[str, str]:
    """Return environment variables that tell a cluster job which commit its code is from.

    A job cannot find this out itself, because Ray does not upload the folder `.git`.
    """
    return {variable: str(code[name]) for name, variable in _CODE_VARIABLES.items()}


def cluster_job() -> str | None:
    """Return the id of the cluster job that this process belongs to; None outside a job."""
    with suppress(KeyError, TypeError, ValueError):
        return str(json.loads(os.environ[_JOB_VARIABLE])["metadata"]["job_submission_id"])
    return None


def sender_variables() -> dict[str, str]:
    """Return environment variables that tell a cluster job which version has submitted it."""
    return {_SENDER_VARIABLE: installed_version("mixsweep") or ""}


def spell_other_sender() -> str | None:
    """Return a warning if another version of mixsweep submitted this cluster job."""
    sender, version = os.environ.get(_SENDER_VARIABLE), installed_version("mixsweep")
    if not sender or sender == version:
        return None
    return (
        f"mixsweep {sender} submitted this job, and mixsweep {version} of the cluster trains it; "
        "install the same version in both places"
    )


def origin_tags() -> dict[str, str]:
    """Return MLflow tags with the commit of the code and the id of the cluster job.

    They include MLflow's own tags for the commit, because MLflow's client does not set these.
    """
    code, job = describe_code(), cluster_job()
    tags = {} if job is None else {"submission_id": job}
    if code is not None:
        tags |= {name: str(value) for name, value in code.items()}
        tags |= {f"mlflow.source.git.{name}": tags[name] for name in ("commit", "branch")}
    return tags


def spell_code(code: Mapping[str, Any]) -> str:
    """Return a commit as text: `commit 0123456`, or `commit 0123456 with changes` if modified."""
    return f"commit {code['commit'][:7]}" + (" with changes" if code["dirty"] else "")


def _git(*arguments: str) -> str | None:
    """Return the output of git in our checkout; None if it fails. It writes nothing there."""
    command = ["git", "--no-optional-locks", "-C", str(SOURCE), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
