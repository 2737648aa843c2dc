from pathlib import Path

import pytest

from reports.numbers.machine_paths import command_elsewhere, text_elsewhere


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def test_paths_in_a_command_line_are_shortened_without_changing_other_words(tmp_path: Path) -> None:
    command = (
        f"mixsweep run {Path.cwd()}/s.yaml --home '{tmp_path}/my runs' --plugin /opt/p.py "
        "--set base.data.folder=/mnt/cats --set 'base.data={folder: /mnt/cats, image_size: 8}' "
        "--tracking-uri https://***@host:5000/x --price 3/5"
    )
    assert command_elsewhere(command) == (
        "mixsweep run s.yaml --home 'my runs' --plugin p.py "
        "--set base.data.folder=cats --set 'base.data={folder: cats, image_size: 8}' "
        "--tracking-uri https://***@host:5000/x --price 3/5"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot read '/mnt/a/b.png': truncated", "cannot read 'b.png': truncated"),
        ("no file /mnt/a.png.", "no file a.png."),
        ("3/5 runs, and/or https://a.b/c", "3/5 runs, and/or https://a.b/c"),
    ],
)
def test_paths_in_a_message_are_reduced_to_their_last_part(text: str, expected: str) -> None:
    assert text_elsewhere(text) == expected
