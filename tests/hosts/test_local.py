"""`cluster/local.sh` as a user starts it: a head node with a token, and a study sent to it."""

import signal
import time
from pathlib import Path

import pytest

from tests.faults.launches import wait_for
from tests.hosts.conftest import Record
from tests.hosts.operators import REPOSITORY, STUDY, Operator

pytestmark = [pytest.mark.long, pytest.mark.slow, pytest.mark.timeout(1800, func_only=True)]

BORDER = "Everything of it ran, on one machine."


def test_a_local_head_trains_a_submitted_study_and_ends_on_a_signal(
    tmp_path: Path, hosts: Path, record: Record
) -> None:
    del hosts  # it gives the test a namespace
    operator = Operator.arrives(tmp_path)
    start = f"exec sh {REPOSITORY}/cluster/local.sh --num-cpus=2 > {tmp_path}/head.txt 2>&1"
    began = time.monotonic()
    head = operator.begin(start)
    url = "http://127.0.0.1:8265"
    submit = f"mixsweep submit {' '.join(STUDY)} --set base.epochs=5 --set seeds=1 --address {url}"
    token = "$(cat ~/.config/mixsweep/ray_token)"
    answer = f'curl --silent --header "Authorization: Bearer {token}" {url}/api/version'
    wait_for(lambda: "ray_version" in operator.answers(answer))
    up = time.monotonic() - began
    refused = operator.type(f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN=5a5a {submit}", code=2)
    assert "Traceback" not in refused
    said = operator.type(submit)
    assert "2 runs to train" in said
    again = operator.type(submit)
    assert "2 runs are stored, nothing to train" in again
    head.send_signal(signal.SIGTERM)
    head.communicate(timeout=240)
    operator.note(
        "sh ~/mixsweep/cluster/local.sh --num-cpus=2    # in another terminal, ended by kill",
        (tmp_path / "head.txt").read_text(), f"exit {head.returncode}", time.monotonic() - began,
    )  # fmt: skip
    assert (tmp_path / "laptop/.config/mixsweep/ray_token").stat().st_mode & 0o77 == 0
    record(
        "local",
        "cluster/local.sh and a study of 2 runs",
        {
            "seconds until it answered": round(up, 1),
            "a wrong token": "refused with exit code 2",
            "runs done": 2,
            "the same command again": "2 runs are stored, nothing to train",
        },
        operator.first_use("local.sh", BORDER),
    )
