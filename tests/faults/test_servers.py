"""The same fault tests with the store on an S3 server and MLflow on PostgreSQL."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mixup_core.store.checkpoints import Store
from sweeps.leasing.lease import Lease
from sweeps.state.ledger import enter
from tests.conftest import CommandLine, CommandLines
from tests.faults.invariants import assert_nothing_was_lost
from tests.faults.launches import TWO_LAWS, Launch, Task, wait_for
from tests.faults.tracking_server import TrackingServer
from tests.servers import free_port, postgres

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600, func_only=True)]


@pytest.fixture
def tracking(
    tmp_path: Path, s3: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[TrackingServer]:
    monkeypatch.setenv("MLFLOW_S3_ENDPOINT_URL", s3["AWS_ENDPOINT_URL"])
    with postgres(tmp_path) as url:
        server = TrackingServer(tmp_path, free_port(), url, "s3://studies/artifacts")
        server.start()
        yield server
        server.kill()


def test_killed_workers_and_a_killed_driver_lose_no_results_on_remote_servers(
    command_line: CommandLines,
    run_undisturbed: Callable[[Task], CommandLine],
    tracking: TrackingServer,
    tmp_path: Path,
) -> None:
    # Long enough for commands that ask a server to find it under way.
    task = Task(TWO_LAWS.file, ("base.epochs=160",))
    mixsweep = command_line()
    url = f"s3://studies{tmp_path}/store"
    places = ("--store", url, "--tracking-uri", tracking.uri)
    first, second = task.study.runs()[:2]
    with Launch(mixsweep, task, *places) as launch:
        pid = launch.worker(first)
        acknowledged = task.acknowledged(url)
        launch.kill_worker(pid)
        status = wait_for(lambda: mixsweep.json("status", task.file, "--store", url)["driver"])
        assert status["pid"] == launch.process.pid
        busy = mixsweep("run", *task.arguments, *places, code=3).stderr
        assert f"is already run by pid {launch.process.pid} on " in busy
        launch.worker(first, epochs=2, other_than=pid)
        launch.stage(second)
        acknowledged = {**acknowledged, **task.acknowledged(url)}
        assert launch.process.poll() is None, "it ended before it could be killed"
        launch.process.kill()
    with Launch(mixsweep, task, *places) as launch:
        launch.end(0)
    assert Lease.current(Store(url), task.study.name) is None
    assert_nothing_was_lost(
        task, mixsweep, run_undisturbed(task),
        acknowledged=acknowledged, store=url, database=tracking.backend,
    )  # fmt: skip
    assert "no file is damaged" in mixsweep("store", "verify", "--store", url).stdout


AUTHENTICATION = """[mlflow]
default_permission = NO_PERMISSIONS
database_uri = sqlite:///{folder}/users.db
admin_username = admin
admin_password = {password}
authorization_function = mlflow.server.auth:authenticate_request_basic_auth
"""


def test_a_tracking_password_is_used_and_never_written(
    command_line: CommandLines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    password, users = "canary-3f9c27", tmp_path / "users.ini"
    users.write_text(AUTHENTICATION.format(folder=tmp_path, password=password))
    monkeypatch.setenv("MLFLOW_AUTH_CONFIG_PATH", str(users))
    monkeypatch.setenv("MLFLOW_FLASK_SERVER_SECRET_KEY", "0" * 32)
    server = TrackingServer(tmp_path, free_port(), options=("--app-name", "basic-auth"))
    server.start()
    study = (*TWO_LAWS.arguments, "--tracking-uri", server.uri)
    user = {"MLFLOW_TRACKING_USERNAME": "admin"}
    welcome = command_line(**user, MLFLOW_TRACKING_PASSWORD=password)
    stranger = command_line(**user, MLFLOW_TRACKING_PASSWORD="another-canary")
    for home in (welcome.home, stranger.home):
        enter(TWO_LAWS.study, Store(str(home / "store")), "mixsweep run")
    said = welcome("sync", *study)
    assert "0 finished runs of 4 are in MLflow" in said.stdout
    refused = stranger("sync", *study, code=2)
    assert "You are not authenticated" in refused.stderr
    assert "another-canary" not in refused.stderr
    server.kill()
    written = [path.read_bytes() for path in welcome.home.rglob("*") if path.is_file()]
    written += [server.database.read_bytes(), (said.stdout + said.stderr).encode()]
    assert not any(password.encode() in content for content in written)
