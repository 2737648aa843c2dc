"""Jobs: connect to a Ray cluster over HTTP with a token, start a job, and print its output."""

import asyncio
import contextlib
import logging
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from mixup_core.addresses import web_address

_PATIENCE = 10.0
"""Seconds to wait for an answer from the cluster."""
_POLL_EVERY = 0.5
_TOKEN = Path(".config") / "mixsweep" / "ray_token"
"""Path, below a user's home directory, of the file with the cluster's token. Used if no environment
variable names another file."""
_TOKEN_VARIABLES = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_SIGNAL_BASE = 128
"""A shell reports a process that a signal ended with this number plus the number of the signal."""
_TALKATIVE = (
    "dashboard.modules.dashboard_sdk",
    "dashboard.modules.job.sdk",
    "_private.runtime_env.packaging",
    "_private.runtime_env.working_dir",
)
"""Modules of Ray whose log messages are hidden, because they list every ignore file and excluded
folder of an upload."""
STOPPED, LOST = 130, 1
"""Exit codes for a job that was stopped, and for one that ended without an exit code."""


class ClusterError(Exception):
    """A cluster cannot run a job, or is not safe to use; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Connection to a Ray cluster that requires a token."""

    address: str
    """URL of the cluster's dashboard."""
    client: Any
    """Ray's own client for jobs."""

    @classmethod
    def connect(cls, address: str) -> "Cluster":
        """Connect to a Ray cluster; check first that it requires a token and accepts this user's.

        Args:
            address: URL of the cluster's dashboard, `http://HOST:PORT`.

        Raises:
            ClusterError: If nothing answers at the address, if the cluster requires no token, or if
                it refuses the token of this user.
        """
        _require_token_mode(address)
        os.environ["RAY_AUTH_MODE"] = "token"
        token = Path.home() / _TOKEN
        if not any(os.environ.get(name) for name in _TOKEN_VARIABLES) and token.is_file():
            os.environ["RAY_AUTH_TOKEN_PATH"] = str(token)
        # These variables would override the address that Ray's client is given.
        os.environ.pop("RAY_ADDRESS", None)
        os.environ["RAY_API_SERVER_ADDRESS"] = address
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        from ray.job_submission import JobSubmissionClient

        for name in _TALKATIVE:
            logging.getLogger(f"ray.{name}").setLevel(logging.ERROR)
        with _one_message(address):
            return cls(address, JobSubmissionClient(address))

    def job_of(self, metadata: Mapping[str, str]) -> str | None:
        """Return the id of an unfinished job with the given metadata; None if no job has them."""
        with _one_message(self.address):
            jobs = self.client.list_jobs()
        for job in jobs:
            known = job.metadata or {}
            if not job.status.is_terminal() and metadata.items() <= known.items():
                return str(job.submission_id)
        return None

    def start(
        self, job: str, entrypoint: str, environment: Mapping[str, Any], metadata: Mapping[str, str]
    ) -> None:
        """Upload the working directory, and start a job on the Ray cluster."""
        with _one_message(self.address):
            self.client.submit_job(
                submission_id=job,
                entrypoint=entrypoint,
                runtime_env=dict(environment),
                metadata=dict(metadata),
            )

    def follow(self, job: str) -> int:
        """Print the output of a job until it ends, and return its exit code."""
        num_shown = 0
        failures_since: float | None = None
        while True:
            num_shown = asyncio.run(self._print_from(job, num_shown))
            try:
                with _one_message(self.address):
                    info = self.client.get_job_info(job)
            except ClusterError as error:
                failures_since = failures_since or time.monotonic()
                if time.monotonic() - failures_since > _PATIENCE:
                    raise ClusterError(f"{error}; perhaps the job is still running") from error
            else:
                failures_since = None
                if info.status.is_terminal():
                    asyncio.run(self._print_from(job, num_shown))
                    return _exit_code(info)
            time.sleep(_POLL_EVERY)

    async def _print_from(self, job: str, num_shown: int) -> int:
        """Print the log of a job after a position; return the new position."""
        from aiohttp import ClientError

        position = 0
        with contextlib.suppress(ClientError, OSError, RuntimeError):
            async for part in self.client.tail_job_logs(job):
                new = part[max(0, num_shown - position) :]
                position += len(part)
                if new:
                    click.echo(new, nl=False)
                    num_shown = position
        return num_shown


@contextlib.contextmanager
def _one_message(address: str) -> Iterator[None]:
    """Convert the errors of Ray's client inside the block, which have many lines, to one line."""
    from ray.exceptions import AuthenticationError

    try:
        yield
    except AuthenticationError as error:
        found = "refuses this token" if "Invalid" in str(error) else "requires a token"
        raise ClusterError(
            f"{address}: the cluster {found}; write the token that the cluster was started with "
            f"into the file ~/{_TOKEN}, or set RAY_AUTH_TOKEN_PATH to another file with it."
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"{address}: Ray's job client failed: {_first_line(error)}") from error


def _require_token_mode(address: str) -> None:
    """Check that a cluster answers at an address and requires a token."""
    if not _is_address(address):
        raise ClusterError(
            f"--address must be http://HOST:8265 without a login, got {web_address(address)}; for "
            "the token, set RAY_AUTH_TOKEN_PATH to a file that contains it"
        )
    try:
        with urllib.request.urlopen(f"{address}/api/version", timeout=_PATIENCE):  # noqa: S310
            pass
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == HTTPStatus.UNAUTHORIZED:
            return
        raise ClusterError(
            f"{address}: the server answers with HTTP status {error.code}, so it is no Ray cluster"
        ) from error
    except (OSError, ValueError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise ClusterError(f"{address}: no Ray cluster answers ({reason})") from error
    raise ClusterError(
        f"{address}: the cluster requires no token, so anyone who reaches it can run code on it; "
        "start it with RAY_AUTH_MODE=token, as cluster/local.sh does."
    )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:  # brackets without an IPv6 address
        return False
    is_web = parts.scheme in {"http", "https"}
    return is_web and bool(parts.hostname) and web_address(text).is_whole


def _exit_code(info: Any) -> int:
    code: int | None = info.driver_exit_code
    if code is not None:
        return code if code >= 0 else _SIGNAL_BASE - code
    if info.status.value == "STOPPED":
        click.echo("the job was stopped; run the same command again to resume", err=True)
        return STOPPED
    said = _first_line(info.message or f"its status is {info.status.value}")
    click.echo(f"the job ended without an exit code: {said}", err=True)
    return LOST


def _first_line(said: object) -> str:
    return (str(said).strip().splitlines() or [type(said).__name__])[0]
