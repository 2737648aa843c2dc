"""Stores on a disk, in memory and on object stores, and a disk whose file modes bind even root."""

from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import pytest

from mixup_core.store.checkpoints import Store
from tests.damages import bound_by_modes

# `test_files.py` tests buckets on a server; `make long` tests whole stores there.
SERVERS = [pytest.param(name, marks=pytest.mark.long) for name in ("moto", "ceph")]


@pytest.fixture(params=["folder", "memory", *SERVERS])
def url(
    request: pytest.FixtureRequest, tmp_path: Path, client_of: Callable[[str], object]
) -> Iterator[str]:
    if request.param == "folder":
        yield str(tmp_path / "home" / "store")
    elif request.param == "memory":
        yield f"memory:/{tmp_path}"
        files = fsspec.filesystem("memory")
        for path in files.find(str(tmp_path)):
            files.rm_file(path)
    else:
        client_of(request.param)
        yield f"s3://studies{tmp_path}/store"


@pytest.fixture
def store(url: str) -> Store:
    return Store(url)


@pytest.fixture
def disk(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def modest() -> Iterator[Store]:
    """Store whose file modes bind this process even if it is root."""
    with bound_by_modes() as folder:
        yield Store(str(folder / "store"))
