"""Uploads: the files that a job gets, and those that are never uploaded."""

import json
import os
import zipfile
from collections.abc import Collection
from pathlib import Path

import pytest

from sweeps.running import upload as uploads
from sweeps.running.upload import Upload, UploadError

CREDENTIALS = [
    ".config/gcloud/application_default_credentials.json", ".config/gh/hosts.yml",
    ".cache/huggingface/token", ".local/share/keyrings/login.keyring", "adc/token", ".condarc",
    "cluster.kubeconfig", ".m2/settings.xml",
    ".pgpass", ".netrc", ".ssh/config", ".ssh/known_hosts", ".aws/credentials", ".git-credentials",
    ".kube/config", "server.pem", "SERVER.PEM", "a/b/tls.key", ".env", ".env.local", ".npmrc",
    "id_rsa", "id_ed25519", "id_ed25519.pub", "id_ecdsa_sk", "deep/.docker/config.json",
    "kaggle.json", "credentials.json", "secrets.toml", ".bash_history", "client_secret_1.json",
    "my.token", ".huggingface/token", ".ray/auth_token", "rootkey.csv", "me_accessKeys.csv",
    "kubeconfig.yaml", "prod-kubeconfig.yaml", "prod-kubeconfig.yml", "ray_token",
    "terraform.tfstate.backup", ".mc/config.json", "auth.json",
]  # fmt: skip
HARMLESS = ["study.yaml", "plugin.py", "id_mapping.py", "secrets.py", "keys.md", "a/b/env.txt"]


def write(folder: Path, *names: str, content: str = "x") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def files_of(folder: Path, *excludes: str, kept: Collection[Path] = ()) -> tuple[str, ...]:
    return Upload.of(folder, excludes=excludes, kept=kept).files


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_credential_is_excluded_from_an_upload_and_reported(tmp_path: Path, name: str) -> None:
    write(tmp_path, name, *HARMLESS)
    found = Upload.of(tmp_path, excludes=(), kept=())
    assert found.files == tuple(sorted(HARMLESS))
    assert len(found.credentials) == 1
    assert name.startswith(found.credentials[0])


@pytest.mark.parametrize(
    "head",
    ["-----BEGIN RSA PRIVATE KEY-----", "-----BEGIN OPENSSH PRIVATE KEY-----",
     "-----BEGIN PGP PRIVATE KEY BLOCK-----", "PuTTY-User-Key-File-3: ssh-ed25519"],
)  # fmt: skip
def test_a_private_key_is_detected_by_its_content(tmp_path: Path, head: str) -> None:
    write(tmp_path, "notes.txt", content=f"# mine\n{head}\nMIIE")
    write(tmp_path, "sub/key.json", content=json.dumps({"private_key": f"{head}\nMIIE"}))
    found = Upload.of(tmp_path, excludes=(), kept=()).credentials
    is_pem = head.startswith("-")
    assert found == (("notes.txt", "sub/key.json") if is_pem else ("notes.txt",))


@pytest.mark.parametrize(
    "content",
    [json.dumps({"auths": {"ghcr.io": {}}}), "github.com:\n    oauth_token: x",
     "[default]\naws_secret_access_key = x", "users:\n- user:\n    client-key-data: x"],
    ids=["docker", "gh", "aws", "kubectl"],
)  # fmt: skip
def test_a_credential_of_any_name_is_detected_by_its_content(tmp_path: Path, content: str) -> None:
    write(tmp_path, "notes.txt", content=content)
    assert Upload.of(tmp_path, excludes=(), kept=()).credentials == ("notes.txt",)


def test_a_link_to_a_credential_is_excluded_from_an_upload(tmp_path: Path) -> None:
    write(tmp_path, "elsewhere/.netrc", "here/study.yaml")
    (tmp_path / "here" / "harmless.txt").symlink_to(tmp_path / "elsewhere" / ".netrc")
    found = Upload.of(tmp_path / "here", excludes=(), kept=())
    assert (found.files, found.credentials) == (("study.yaml",), ("harmless.txt",))


@pytest.mark.parametrize(
    "target", [".kube", ".docker", ".config/gh", ".kube/config", ".config/gh/hosts.yml"]
)
def test_a_link_into_a_folder_of_credentials_is_excluded_from_an_upload(
    tmp_path: Path, target: str
) -> None:
    write(tmp_path, ".kube/config", ".docker/config.json", ".config/gh/hosts.yml", "here/a/b")
    (tmp_path / "here" / "x").symlink_to(tmp_path / target)
    (tmp_path / "here" / "inside").symlink_to("a")
    found = Upload.of(tmp_path / "here", excludes=(), kept=())
    assert found.files == ("a/b", "inside/b")
    assert [name.rstrip("/") for name in found.credentials] == ["x"]


def test_links_within_a_working_directory_below_a_folder_of_credentials_are_uploaded(
    tmp_path: Path,
) -> None:
    write(tmp_path, ".cache/desk/a/b")
    (tmp_path / ".cache" / "desk" / "link").symlink_to(tmp_path / ".cache" / "desk" / "a")
    assert files_of(tmp_path / ".cache" / "desk") == ("a/b", "link/b")


def test_ignored_files_are_neither_uploaded_nor_reported(tmp_path: Path) -> None:
    write(tmp_path, "a.pem", "log/x", "sub/b.pem", "sub/keep.txt", "sub/drop.txt", "c.tmp")
    write(tmp_path, ".gitignore", content="*.pem\n/log/\n")
    write(tmp_path, "sub/.rayignore", content="drop.txt\n")
    found = Upload.of(tmp_path, excludes=["*.tmp"], kept=())
    assert found.files == (".gitignore", "sub/.rayignore", "sub/keep.txt")
    assert found.credentials == ()


def test_an_ignore_file_can_allow_a_file_that_looks_like_a_credential(tmp_path: Path) -> None:
    write(tmp_path, "public.pem", "private.pem")
    write(tmp_path, ".rayignore", content="!public.pem\n")
    found = Upload.of(tmp_path, excludes=(), kept=())
    assert (found.files, found.credentials) == ((".rayignore", "public.pem"), ("private.pem",))


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        (".gitignore", "/*\n!/src/\n"),
        (".gitignore", "!.env\n!/src/*\n"),
        (".rayignore", "/*\n!/src/\n"),
        (".rayignore", "!/src/*\n"),
        (".rayignore", "!*\n"),
        (".rayignore", "!src\n"),
    ],
)
def test_a_pattern_for_other_names_or_for_git_allows_no_credentials_or_results(
    tmp_path: Path, file: str, lines: str
) -> None:
    secrets = ("src/.aws/credentials", "src/.env", "src/id_rsa")
    write(tmp_path, *secrets, "src/runs/mlflow.db", "src/runs/store/x", "src/a.py")
    write(tmp_path, file, content=lines)
    found = Upload.of(tmp_path, excludes=(), kept=())
    assert "src/a.py" in found.files
    assert set(found.files) <= {file, "src/a.py"}
    assert found.credentials == ("src/.aws/", "src/.env", "src/id_rsa")


@pytest.mark.parametrize(
    "name", ["results[2026]", "a\\b", "!x", "#y", "a b ", "*", "w%201", "h?1", "a::b", "é"]
)
def test_results_are_not_uploaded_under_any_folder_name(tmp_path: Path, name: str) -> None:
    write(tmp_path, f"{name}/store/x.json", f"sub/{name}x", "results2/y", "study.yaml")
    (tmp_path / "link").symlink_to(tmp_path / name)
    kept = {Path(os.path.realpath(tmp_path / name))}
    assert files_of(tmp_path, kept=kept) == tuple(
        sorted(["results2/y", "study.yaml", f"sub/{name}x"])
    )


@pytest.mark.parametrize("name", ["runs", "a/b/results[2026]", "store"])
@pytest.mark.parametrize(
    "results",
    [
        ["store/stages/ab/x.json", "mlflow.db", "artifacts/x", "optuna.db"],
        ["reports/one/table.md", "mlflow.db"],
        ["stages/ab/x.json", "states/ab/x.pt", "studies/one/launch.json"],
        ["provenance.json", "runs.csv", "report.html"],
    ],
    ids=["home", "home of another store", "store", "report"],
)
def test_results_of_other_launches_are_not_uploaded(
    tmp_path: Path, name: str, results: list[str]
) -> None:
    write(tmp_path, *(f"{name}/{file}" for file in results), "study.yaml", "stages/plan.txt")
    assert files_of(tmp_path) == ("stages/plan.txt", "study.yaml")
    write(tmp_path, ".rayignore", content=f"!{name.replace('[', '?').replace(']', '?')}\n")
    assert len(files_of(tmp_path)) == len(results) + 3


def test_circular_links_and_special_files_are_not_uploaded(tmp_path: Path) -> None:
    write(tmp_path, "a/x")
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    assert files_of(tmp_path) == ("a/x",)


def test_a_file_name_that_is_not_utf8_is_refused_with_advice(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("x")
    with pytest.raises(UploadError, match=r"\.txt': the name is not UTF-8.*\.rayignore"):
        files_of(tmp_path)


def test_the_archive_has_the_files_listed_and_equal_files_give_equal_bytes(tmp_path: Path) -> None:
    write(tmp_path / "desk", *HARMLESS, ".netrc", content="x" * 1000)
    (tmp_path / "desk" / "plugin.py").chmod(0o755)
    archives = tmp_path / "1.zip", tmp_path / "2.zip"
    for archive in archives:
        found = Upload.of(tmp_path / "desk", excludes=(), kept=())
        found.write(archive)
        os.utime(tmp_path / "desk" / "study.yaml", (0, 0))
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with zipfile.ZipFile(archives[0]) as packed:
        assert tuple(packed.namelist()) == found.files == tuple(sorted(HARMLESS))
        assert packed.getinfo("plugin.py").external_attr >> 16 & 0o777 == 0o755
        assert {packed.read(name) for name in HARMLESS} == {b"x" * 1000}


def test_an_upload_that_ray_would_not_take_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_LARGEST", 100)
    write(tmp_path / "desk", *HARMLESS)
    with pytest.raises(UploadError, match="--list-files"):
        Upload.of(tmp_path / "desk", excludes=(), kept=()).write(tmp_path / "x.zip")
