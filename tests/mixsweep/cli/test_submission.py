"""submit: the files that it uploads, and what it says about places on the cluster."""

import os
import subprocess
from importlib import resources
from pathlib import Path
from unittest.mock import Mock

import pytest
from click.testing import CliRunner

from mixsweep.cli.main import commands
from mixsweep.request import DONE
from tests.mixsweep.cli.conftest import type_in

ADDRESS = "http://head:8265"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return a cluster that accepts every job."""
    cluster = Mock(address=ADDRESS, job_of=lambda study: None)
    monkeypatch.setattr("mixsweep.cli.submission.Cluster", Mock(connect=lambda address: cluster))
    return cluster


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: Mock) -> Path:
    """Return a home, while the working directory is empty and a cluster accepts every job."""
    (tmp_path / "desk").mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    return tmp_path / "runs"


def submitted(home: Path, *options: str, label: str = "store", study: str = "digits") -> str:
    """Return the line of a submission that names the store, or that has another label."""
    arguments = ["submit", study, "--address", ADDRESS, "--no-follow"]
    said = CliRunner().invoke(
        commands, [*arguments, "--home", str(home), *options], standalone_mode=False
    )
    assert said.return_value == DONE, said.exception
    (line,) = (line for line in said.stderr.splitlines() if line.startswith(f"{label} "))
    return line.removeprefix(label).strip()


def test_a_job_uses_the_store_given_as_an_option(home: Path) -> None:
    store = "s3://studies/team"
    assert submitted(home, "--store", store) == f"{store} on the cluster"


@pytest.mark.parametrize("name", ["digits", "-x.yaml"])
def test_a_job_reads_the_uploaded_file_also_if_its_name_has_another_meaning(
    home: Path, cluster: Mock, name: str
) -> None:
    text = resources.files("sweeps.studies").joinpath("digits.yaml").read_text()
    Path(name).write_text(text.replace("study: digits", "study: mine"))
    submitted(home, study=f"./{name}")
    assert f" run ./{name} --home " in cluster.start.call_args.args[1]


def test_the_fetching_line_brings_report_and_archive_through_the_log_of_a_job(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ray job submit` is replaced by a program that prints lines of its own around the output."""
    for name in ("reports/digits/table.md", "exports/digits.mixsweep.zip"):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_bytes(bytes(range(256)) * 40)
    ray = home / "ray"
    ray.write_text(
        '#!/bin/sh\necho "Job submission server address: http://head"\necho -------\n'
        'while [ "$1" != -- ]; do shift; done; shift\n"$@"\necho "Job \'raysubmit_1\' succeeded"\n'
    )
    ray.chmod(0o755)
    (home / "python").write_text("#!/bin/sh\necho made an archive of $5\n")
    (home / "python").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("MIXSWEEP_PYTHON", str(home / "python"))
    line = submitted(home, label="fetch")
    subprocess.run(["sh", "-ec", line], check=True)
    for name in ("reports/digits/table.md", "exports/digits.mixsweep.zip"):
        assert Path(name).read_bytes() == (home / name).read_bytes()


def test_a_folder_of_photos_beside_the_study_is_refused_with_advice(
    launched: Path, tmp_path: Path
) -> None:
    del launched
    said = type_in("submit", str(tmp_path / "place" / "signs.yaml"), "--list-files")
    told = f"{tmp_path}/place/photos: folders of photos are not uploaded"
    assert str(said.exception).startswith(told)
    assert "that this machine and all nodes share" in str(said.exception)
