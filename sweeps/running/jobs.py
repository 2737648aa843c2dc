"""Jobs: connect to a Ray cluster over HTTP with a token, start a job, and print its output."""

import asyncio
import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import click

from mixup_core.addresses import web_address
from mixup_core.rules import first_line, printable

_PATIENCE = 10.0
"""Seconds to wait for an answer from the cluster."""
_POLL_EVERY = 0.5
_TOKEN = Path(".config") / "mixsweep" / "ray_token"
"""Path, below a user's home directory, of the file with the cluster's token. Used if no environment
variable names another file."""
HEADERS = "RAY_JOB_HEADERS"
"""Environment variable, also of `ray job`, with HTTP headers as JSON, for a proxy that asks for a
login."""
_CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Environment variables, also of other programs, with the file of trusted certificates."""
_TOKEN_HEADER, _TOKEN_BEHIND_LOGIN = "Authorization", "X-Ray-Authorization"
"""Headers in which Ray accepts a token; it reads the second if there is no first."""
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
# Frozen: exit codes, which scripts check; tests/sweeps/running/test_jobs.py fails.
STOPPED, LOST = 130, 1
"""Exit codes for a job that was stopped, and for one that ended without an exit code."""


class ClusterError(Exception):
    """A cluster cannot run a job, or is not safe to use; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Connection to a Ray cluster that requires a token, unless the user accepts one without."""

    address: str
    """URL of the cluster's dashboard."""
    client: Any
    """Ray's own client for jobs."""

    @classmethod
    def connect(cls, address: str) -> "Cluster":
        """Connect to a Ray cluster that requires a token and accepts the one of this user.

        RAY_AUTH_MODE=disabled accepts a cluster without a token. Raises `ClusterError` otherwise.
        """
        if not _is_address(address):
            raise ClusterError(
                f"--address must be http://HOST:8265 without a login, got {web_address(address)}; "
                f"for the token, set RAY_AUTH_TOKEN_PATH to a file that contains it, and for the "
                f"login of a proxy, {HEADERS}"
            )
        headers, token = _headers(), "" if accepts_no_token() else _token()
        _require_token(address, headers)
        if token:
            names = {name.lower() for name in headers}
            name = _TOKEN_BEHIND_LOGIN if _TOKEN_HEADER.lower() in names else _TOKEN_HEADER
            if name.lower() not in names:
                headers[name] = f"Bearer {token}"
        # These variables would override the address that Ray's client is given.
        os.environ.pop("RAY_ADDRESS", None)
        os.environ["RAY_API_SERVER_ADDRESS"] = address
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        from ray.job_submission import JobSubmissionClient

        for name in _TALKATIVE:
            logging.getLogger(f"ray.{name}").setLevel(logging.ERROR)
        with _one_message(address):
            return cls(
                address,
                JobSubmissionClient(address, headers=headers, verify=certificates() or True),
            )

    def job_of(self, metadata: Mapping[str, str]) -> str | None:
        """Return the id of an unfinished job with the given metadata; None if no job has them."""
        with _one_message(self.address):
            jobs = self.client.list_jobs()
        for job in jobs:
            job_metadata = job.metadata or {}
            if not job.status.is_terminal() and metadata.items() <= job_metadata.items():
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
        position = 0
        from aiohttp import ClientError, WSServerHandshakeError

        try:
            async for part in self.client.tail_job_logs(job):
                new = part[max(0, num_shown - position) :]
                position += len(part)
                if new:
                    click.echo(new, nl=False)
                    num_shown = position
        except WSServerHandshakeError:  # a proxy without WebSocket
            with contextlib.suppress(ClusterError):
                log = self.log_of(job)
                click.echo(log[num_shown:], nl=False)
                return max(num_shown, len(log))
        except (ClientError, OSError, RuntimeError):
            pass
        return num_shown

    def log_of(self, job: str) -> str:
        with _one_message(self.address):
            return str(self.client.get_job_logs(job))


def accepts_no_token() -> bool:
    return os.environ.get("RAY_AUTH_MODE", "").lower() == "disabled"


def certificates() -> str | None:
    return next((place for name in _CERTIFICATES if (place := os.environ.get(name))), None)


@contextlib.contextmanager
def _one_message(address: str) -> Iterator[None]:
    """Convert the errors of Ray's client inside the block, which have many lines, to one line."""
    from ray.exceptions import AuthenticationError

    try:
        yield
    except AuthenticationError as error:
        message = first_line(error)
        if not _says_token(message):
            raise ClusterError(
                f"{address}: a proxy before the cluster refuses the login in {HEADERS} "
                f"({printable(message)})"
            ) from error
        fault = "refuses this token" if "Invalid" in message else "requires a token"
        raise ClusterError(
            f"{address}: the cluster {fault}; write the token that the cluster was started with "
            f"into the file ~/{_TOKEN}, or set RAY_AUTH_TOKEN_PATH to another file with it."
            + (" RAY_AUTH_MODE=disabled is set, so no token is sent." * accepts_no_token())
            + _PASSED_ON * (_TOKEN_HEADER.lower() in map(str.lower, _headers()))
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise ClusterError(f"{address}: Ray's job client failed: {first_line(error)}") from error


_PASSED_ON = (
    " A proxy must not pass the header Authorization on to Ray, which takes it for its token "
    '(nginx: proxy_set_header Authorization "").'
)
_UNCHECKED = (
    "`ray job submit` submits without this check; the section on it in cluster/README.md has the "
    "command."
)


def _headers() -> dict[str, str]:
    try:
        headers = json.loads(os.environ.get(HEADERS) or "{}")
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        raise ClusterError(  # without its value, which may have a password
            f"{HEADERS} must be a JSON object of texts, such as "
            '{"Cookie": "session=..."} or {"Authorization": "Basic ..."}'
        )
    return headers


def _token() -> str:
    """Return the token of this user for Ray clusters, or an empty text."""
    if token := os.environ.get("RAY_AUTH_TOKEN", "").strip():
        return token
    path = os.environ.get("RAY_AUTH_TOKEN_PATH")
    places = [Path(path)] if path else [Path.home() / _TOKEN, Path.home() / ".ray/auth_token"]
    for place in places:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return place.read_text(encoding="utf-8").strip()
    return ""


def _require_token(address: str, headers: Mapping[str, str]) -> None:
    """Check that a Ray cluster answers to these headers, and that it also requires a token."""
    bare = {name: v for name, v in headers.items() if name.lower() != _TOKEN_BEHIND_LOGIN.lower()}
    without = {name: v for name, v in bare.items() if name.lower() != _TOKEN_HEADER.lower()}
    answer = _ask(address, bare)
    if _is_ray(answer) and without != bare:
        # The header may have been Ray's token as well as the login of a proxy.
        answer = second if _says_token((second := _ask(address, without)).text) else answer
    if _says_token(answer.text) and answer.status_code in {401, 403}:
        return
    if not _is_ray(answer):
        raise ClusterError(f"{address}: {_seen(address, answer)}\n{_UNCHECKED}")
    who = f"whoever has the headers in {HEADERS}" if bare else "anyone who reaches it"
    if accepts_no_token():
        click.echo(f"{address}: no token is required, so {who} can run code there", err=True)
        return
    raise ClusterError(
        f"{address}: the cluster requires no token, so {who} can run code on it; start it with "
        "RAY_AUTH_MODE=token, as cluster/local.sh does, or set RAY_AUTH_MODE=disabled here to "
        f"accept it.\n{_UNCHECKED}"
    )


def _ask(address: str, headers: Mapping[str, str]) -> Any:
    import requests

    try:
        return requests.get(
            f"{address}/api/version",
            headers=dict(headers),
            verify=certificates() or True,
            timeout=_PATIENCE,
            allow_redirects=False,
        )
    except requests.exceptions.InvalidHeader:
        raise ClusterError(f"{HEADERS} has an invalid HTTP header") from None
    except (OSError, ValueError) as error:  # Requests' own errors are of these types
        cause: BaseException = error
        while (deeper := cause.__cause__ or cause.__context__) is not None:
            cause = deeper
        untrusted = "CERTIFICATE" in str(cause)
        variable = next(filter(os.environ.get, _CERTIFICATES), _CERTIFICATES[-1])
        raise ClusterError(
            f"{address}: no Ray cluster answers ({first_line(cause)})"
            + f"; set {variable} to the file with the certificate of its authority" * untrusted
        ) from error


def _is_ray(answer: Any) -> bool:
    try:
        return answer.status_code == HTTPStatus.OK and "ray_version" in answer.json()
    except (ValueError, TypeError):
        return False


def _says_token(text: str) -> bool:
    """Return True if a text is Ray's refusal of a request without a token, or with a wrong one."""
    return "authentication token" in text


def _seen(address: str, answer: Any) -> str:
    """Return what a server, which is not Ray, answered, and what to do about it."""
    status, server = answer.status_code, printable(answer.headers.get("Server", "the server"))
    login = f'put its login into {HEADERS}, such as {{"Authorization": "Basic ..."}} or ' + (
        '{"Cookie": "..."}'
    )
    if answer.is_redirect:
        target = urlsplit(urljoin(f"{address}/", answer.headers["Location"]))
        place = printable(f"{target.scheme}://{target.hostname}")
        return f"{server} redirects (HTTP status {status}) to {place}, not to Ray; {login}"
    if realm := answer.headers.get("WWW-Authenticate"):
        return f"{server} asks for a login (HTTP status {status}, {printable(realm)[:80]}); {login}"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"{server} refuses the request (HTTP status {status}); {login}"
    kind = printable(answer.headers.get("Content-Type", "no content"))
    return f"{server} answers with HTTP status {status} and {kind}, not as a Ray cluster does"


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
    reason = first_line(info.message or f"its status is {info.status.value}")
    click.echo(f"the job ended without an exit code: {reason}", err=True)
    return LOST
