import zipfile
from pathlib import Path

import pytest

from sweeps.running import upload
from sweeps.running.upload import Upload, UploadError, checkout


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the packages are installed, so that no checkout is uploaded."""
    monkeypatch.setattr(upload, "checkout", lambda: None)


def put(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.usefixtures("installed")
def test_only_named_files_are_uploaded(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    named = [put(desk / "mine.yaml"), put(desk / "nets" / "w.pt"), put(tmp_path / "plugin.py")]
    for other in (".env", ".ssh/id_rsa", "runs/store/x.json", "photos/train/cat/1.png"):
        put(desk / other, "secret")
    found = Upload.of(named, folder=desk)
    assert list(found.files) == ["mine.yaml", "nets/w.pt", "plugin.py"]
    assert [found.name_of(file) for file in named] == ["mine.yaml", "nets/w.pt", "plugin.py"]
    found.write(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert archive.namelist() == list(found.files)


@pytest.mark.usefixtures("installed")
def test_a_file_in_a_linked_folder_keeps_the_place_that_the_study_names(tmp_path: Path) -> None:
    desk = tmp_path / "desk"
    study, _ = put(desk / "mine.yaml"), put(desk / "nets" / "w.pt")
    (desk / "linked").symlink_to("nets")
    found = Upload.of([study, desk / "linked" / "w.pt", desk / ".." / "b.py"], folder=desk)
    assert list(found.files) == ["b.py", "linked/w.pt", "mine.yaml"]


@pytest.mark.usefixtures("installed")
def test_an_upload_larger_than_ray_accepts_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload, "_LARGEST", 100)
    file = put(tmp_path / "mine.yaml", "x" * 50)
    with pytest.raises(UploadError, match="`--list-files` prints the files in it"):
        Upload.of([file], folder=tmp_path).write(tmp_path / "a.zip")


def test_the_packages_of_a_checkout_are_uploaded_without_published_results() -> None:
    root = checkout()
    names = Upload.of([], folder=Path()).files
    assert {"mixsweep/__main__.py", "sweeps/studies/digits.yaml", "sweeps/studies/sources.bib",
            "cluster/runtime-env.yaml", "mixup_core/keys.py"} <= names.keys()  # fmt: skip
    assert {name.partition("/")[0] for name in names} == {
        "mixsweep", "mixup_core", "sweeps", "reports", "cluster",
    }  # fmt: skip
    assert not any(name.startswith("reports/published") for name in names)
    assert all(file == root / name for name, file in names.items())
