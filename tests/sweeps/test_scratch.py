"""Scratch of a driver: its path is short enough for Ray."""

import socket
import tempfile
from pathlib import Path

import pytest

from sweeps.scratch import scratch


@pytest.mark.parametrize("length", [4, 17, 18, 90])
def test_its_path_leaves_room_for_the_longest_socket_of_ray(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as root:
        base = Path(root[:4] if length == 4 else (root + "/" + "x" * 90)[:length])
        if length != 4:
            base.mkdir(parents=True, exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(base))
        with scratch() as folder:
            assert folder.parent == (base if length <= 17 else Path("/tmp"))
            sockets = folder / "ray" / "session_2026-11-21_22-01-02_123456_4194304" / "sockets"
            sockets.mkdir(parents=True)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(sockets / "plasma_store"))
