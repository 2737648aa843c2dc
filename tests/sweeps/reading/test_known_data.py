from dataclasses import replace
from pathlib import Path

import pytest

import sweeps.reading.known_data
from mixup_core.images.config import DataConfig
from mixup_core.images.data.catalog import DataError
from sweeps.reading.known_data import KnownData


def test_data_without_a_folder_are_known_by_name(tmp_path: Path) -> None:
    data = DataConfig(name="digits")
    same, info = KnownData(tmp_path).of(data)
    assert same == data
    assert info.num_classes == 10


def test_a_folder_that_cannot_be_read_is_told_of_again_without_being_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = KnownData(tmp_path)
    data = DataConfig(name="image-folder", folder="photos", image_size=32)
    with pytest.raises(DataError) as first:
        known.of(data)
    monkeypatch.setattr(sweeps.reading.known_data, "describe", None)
    with pytest.raises(DataError) as second:
        known.of(replace(data))
    assert str(first.value) == str(second.value)
    assert str(tmp_path / "photos") in str(first.value)
