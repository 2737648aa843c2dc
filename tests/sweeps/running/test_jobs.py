"""Jobs: accepted clusters, the content of a job, and following it to its end."""

import gc
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from ray.job_submission import JobSubmissionClient

from sweeps.running import jobs
from sweeps.running.jobs import Cluster, ClusterError
from tests.sweeps.running.proxy import LOGIN, certify
from tests.sweeps.running.ray_server import RUNNING, RayServer, ended, ray_server

pytestmark = [
    # What Ray's client gives to aiohttp, and leaves open, is its own affair.
    pytest.mark.filterwarnings("ignore:ssl=None is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

SET = ("RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_USAGE_STATS_ENABLED")
VARIABLES = (
    *SET, "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_JOB_HEADERS",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def collected_here() -> Iterator[None]:
    """Collect garbage before other tests do, for which it would be a warning."""
    yield
    gc.collect()


@pytest.fixture(autouse=True)
def environment_of_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Restore the environment variables that a connection sets; give the token of the server."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in VARIABLES:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("RAY_AUTH_TOKEN", RayServer().token)


@pytest.fixture
def server() -> Iterator[RayServer]:
    with ray_server() as server:
        yield server


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return the clock of jobs, which advances only during calls of `sleep`."""
    clock = Mock(now=1000.0, monotonic=lambda: clock.now)
    clock.sleep = lambda seconds: setattr(clock, "now", clock.now + seconds)
    monkeypatch.setattr(jobs, "time", clock)
    return clock


def cluster_of(server: RayServer) -> Cluster:
    headers = {"Authorization": f"Bearer {server.token}"}
    return Cluster(server.address, JobSubmissionClient(server.address, headers=headers))


@pytest.mark.parametrize(
    "address",
    ["somewhere", "127.0.0.1:8265", "ftp://host:8265", "ray://host:10001", "http://", "http:///x",
     "http://:8265", "http://me@host:8265", "http://me:secret@host:8265", "http://@host:8265", "",
     "http://host:x", "http://host:8265?token=secret",
     "http://[::1", "http://[host]:8265"],
)  # fmt: skip
def test_an_invalid_dashboard_address_is_refused(address: str) -> None:
    with pytest.raises(ClusterError) as caught:
        Cluster.connect(address)
    assert str(caught.value).startswith("--address ")
    assert "--address must be http://HOST:8265" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert set(SET).isdisjoint(os.environ)


@pytest.mark.parametrize(
    ("headers", "who"),
    [
        ("", "anyone who reaches it"),
        ('{"Cookie": "session=swordfish"}', "whoever has the headers in RAY_JOB_HEADERS"),
        ('{"Authorization": "Bearer swordfish"}', "whoever has the headers in RAY_JOB_HEADERS"),
    ],
)
def test_a_cluster_that_requires_no_token_is_refused_unless_the_user_accepts_it(
    server: RayServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    headers: str, who: str,
) -> None:  # fmt: skip
    server.token = ""
    monkeypatch.setenv("RAY_JOB_HEADERS", headers)
    with pytest.raises(ClusterError) as caught:
        Cluster.connect(server.address)
    assert str(caught.value).startswith(
        f"{server.address}: the cluster requires no token, so {who} can run code "
        "on it; start it with RAY_AUTH_MODE=token, as cluster/local.sh does, or set "
        "RAY_AUTH_MODE=disabled here to accept it.\n`ray job submit`"
    )
    assert set(SET).isdisjoint(os.environ)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    assert Cluster.connect(server.address).job_of({}) is None
    warned = capsys.readouterr().err
    assert warned == f"{server.address}: no token is required, so {who} can run code there\n"


@pytest.mark.parametrize("named", [None, "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
@pytest.mark.parametrize("folder", [".config/mixsweep/ray_token", ".ray/auth_token"])
def test_the_token_of_a_file_is_used_if_no_variable_names_another(
    server: RayServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    named: str | None,
    folder: str,
) -> None:
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    token, another = tmp_path / folder, tmp_path / "another"
    token.parent.mkdir(parents=True)
    token.write_text("5a\n")
    another.write_text("5b")
    if named is not None:
        monkeypatch.setenv(named, str(another) if named.endswith("PATH") else "5b")
        server.token = "5b"
    Cluster.connect(server.address)
    assert server.headers["Authorization"] == f"Bearer {server.token}"


@pytest.mark.parametrize(("token", "found"), [
    ("", "requires a token"), ("wrong", "refuses this token"),
])  # fmt: skip
def test_a_missing_or_wrong_token_is_reported_in_one_line(
    server: RayServer, monkeypatch: pytest.MonkeyPatch, token: str, found: str
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", token)
    with pytest.raises(ClusterError) as caught:
        Cluster.connect(server.address)
    assert str(caught.value) == (
        f"{server.address}: the cluster {found}; write the token that the cluster was started with "
        "into the file ~/.config/mixsweep/ray_token, or set RAY_AUTH_TOKEN_PATH to another file "
        "with it."
    )
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ClusterError, match=r"requires a token; .* so no token is sent\.$"):
        Cluster.connect(server.address)


@pytest.mark.skipif(
    shutil.which("openssl") is None, reason="NOT CHECKED: no openssl on this machine"
)
def test_behind_a_proxy_with_a_login_and_an_own_authority_the_token_has_its_own_header(
    clock: Mock,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    certify(tmp_path)
    files, over = (tmp_path / "server.pem", tmp_path / "server.key"), [ended(driver_exit_code=0)]
    with ray_server(files, login=LOGIN, states=over, logs=[("one\n",)]) as server:
        with pytest.raises(ClusterError, match="set SSL_CERT_FILE to the file with the certifi"):
            Cluster.connect(server.address)
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
        with pytest.raises(ClusterError, match='Basic realm="Ray of the lab"'):
            Cluster.connect(server.address)
        monkeypatch.setenv("RAY_JOB_HEADERS", json.dumps({"Authorization": LOGIN}))
        assert Cluster.connect(server.address).follow("j") == 0
        assert server.headers["X-Ray-Authorization"] == f"Bearer {server.token}"
    assert capsys.readouterr().out == "one\n"


MINE = {"study": "digits", "store": "/runs/store"}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({**RUNNING, "metadata": MINE}, "job-1"),
        ({**RUNNING, "metadata": {**MINE, "by": "me"}}, "job-1"),
        ({**RUNNING, "status": "PENDING", "metadata": MINE}, "job-1"),
        ({**RUNNING, "metadata": {"study": "digits"}}, None),
        ({**RUNNING, "metadata": {**MINE, "store": "/else"}}, None),
        ({**RUNNING, "metadata": None}, None),
        (ended("SUCCEEDED", metadata=MINE), None),
    ],
)
def test_the_job_of_a_study_is_the_unfinished_one_with_its_metadata(
    server: RayServer, job: dict[str, Any], expected: str | None
) -> None:
    server.jobs = [
        {**RUNNING, "submission_id": "job-0", "metadata": {"study": "moons"}},
        {"submission_id": "job-1", **job},
    ]
    assert cluster_of(server).job_of(MINE) == expected


def test_a_job_is_started_with_its_folder_command_environment_and_metadata(
    server: RayServer, tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text("study: mine\n")
    environment = {"working_dir": str(tmp_path), "env_vars": {"MIXSWEEP_JOB": "j"}}
    cluster_of(server).start("j", "exec python -m mixsweep", environment, MINE)
    (job,) = server.submitted
    assert (job["submission_id"], job["entrypoint"]) == ("j", "exec python -m mixsweep")
    assert job["metadata"] == MINE
    assert job["runtime_env"]["env_vars"] == {"MIXSWEEP_JOB": "j"}
    assert job["runtime_env"]["working_dir"].startswith("gcs://")
    (package,) = server.uploaded
    assert b"mine.yaml" in package
    assert environment["working_dir"] == str(tmp_path)


@pytest.mark.parametrize(
    ("state", "code", "said"),
    [
        (ended("SUCCEEDED", driver_exit_code=0), 0, ""),
        (ended(driver_exit_code=3), 3, ""),
        (ended(driver_exit_code=-9), 137, ""),
        (ended("STOPPED"), 130, "the job was stopped; run the same command again to resume\n"),
        (
            ended("FAILED", message="\nits node is gone\nand more"), 1,
            "the job ended without an exit code: its node is gone\n",
        ),
        (
            ended("SUCCEEDED", message="Job finished successfully."), 1,
            "the job ended without an exit code: Job finished successfully.\n",
        ),
        (ended("FAILED", message=None), 1,
         "the job ended without an exit code: its status is FAILED\n"),
    ],
)  # fmt: skip
def test_a_job_ends_with_the_exit_code_of_a_shell_or_a_reported_reason(
    server: RayServer, clock: Mock, capsys: pytest.CaptureFixture[str],
    state: dict[str, Any], code: int, said: str,
) -> None:  # fmt: skip
    server.states = [state]
    assert cluster_of(server).follow("j") == code
    assert capsys.readouterr().err == said


def test_a_job_is_followed_to_its_end_and_its_output_is_printed_once(
    server: RayServer, clock: Mock, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each listener gets the log from its beginning, cut into parts at any position."""
    server.states = [{**RUNNING, "status": "PENDING"}, RUNNING, RUNNING, ended(driver_exit_code=5)]
    server.logs = [
        (),
        ("one\n", "two\n"),
        ("one\ntw", "o\nth", "ree\n"),
        ("one\n",),
        ("one\ntwo\n", "", "three\n", "la", "st"),
    ]
    assert cluster_of(server).follow("j") == 5
    assert capsys.readouterr().out == "one\ntwo\nthree\nlast"
    assert server.num_asked == 4


def test_following_a_job_survives_short_silences_of_the_cluster(
    server: RayServer, clock: Mock
) -> None:
    """Each silence is shorter than the time limit, all together are longer."""
    silence: list[dict[str, Any] | int] = [500] * 15
    server.states = [*silence, RUNNING, *silence, RUNNING, *silence, ended(driver_exit_code=0)]
    started = clock.now
    assert cluster_of(server).follow("j") == 0
    assert clock.now - started > 20


def test_a_cluster_whose_server_has_ended_is_reported(clock: Mock) -> None:
    with ray_server() as server:
        cluster = cluster_of(server)
    with pytest.raises(
        ClusterError, match=rf"^{server.address}: .*; perhaps the job is still running$"
    ):
        cluster.follow("j")
