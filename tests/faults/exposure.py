"""Exposure: sockets of this namespace that others could reach, and folders open to them."""

import re
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Self

import ray

ROUTABLE = "10.9.8.7"
_TABLES = ("tcp", "tcp6", "udp", "udp6")
_LISTENS = {"tcp": "0A", "udp": "07"}
"""State of a socket that accepts data from anybody: TCP_LISTEN, and TCP_CLOSE of UDP without a
peer.
"""
_EVERY = 0.05
"""Seconds between two samples; a socket that is open for a shorter time may be missed."""


@contextmanager
def routable_interface() -> Iterator[None]:
    """Give this network namespace an interface through which packets of others could arrive."""
    for command in (
        "link add v0 type veth peer name v1", f"addr add {ROUTABLE}/24 dev v0",
        "link set v0 up", "link set v1 up", "route add default dev v0",
    ):  # fmt: skip
        subprocess.run(["ip", *command.split()], check=True)
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "delete", "v0"], check=True)


@cache
def ray_variables() -> frozenset[str]:
    """Return each environment variable that Ray's Python code mentions, by name."""
    sources = Path(ray.__file__).parent.rglob("*.py")
    texts = (source.read_text(errors="replace") for source in sources)
    return frozenset(
        name for text in texts for name in re.findall(r"\bRAY_[A-Za-z_]{3,60}\b", text)
    )


def hostile(value: str) -> dict[str, str]:
    """Return an environment in which all of Ray's variables but the address have a value."""
    return dict.fromkeys(sorted(ray_variables() - {"RAY_ADDRESS"}), value)


def open_folders(*roots: Path) -> set[Path]:
    """Return the folders that everybody may write to, below the given ones and Ray's own folder."""
    test = ["-type", "d", "-perm", "-0002", "-print0"]
    found = ""
    for root, depth in (*((root, "9") for root in roots), ("/dev/shm", "9"), ("/tmp", "1")):
        command = ["find", str(root), "-maxdepth", depth, *test]
        found += subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {Path(name) for name in found.split("\0") if name}


@dataclass(kw_only=True)
class Watch:
    """Records every socket that is open to others during a `with`."""

    listening: set[str] = field(default_factory=set)
    """Sockets to which others may send, such as `tcp 127.0.0.1:80` or `unix @name`."""
    _before: frozenset[str] = frozenset()
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._before = frozenset(_listening())
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    @property
    def reachable(self) -> set[str]:
        """Sockets that other machines, or other users of this machine, can reach."""
        return {name for name in self.listening if not _is_loopback(name)}

    def _look(self) -> None:
        while not self._stop.wait(_EVERY):
            self.listening |= _listening() - self._before


def _listening() -> set[str]:
    found = {
        f"{table} {_address(row[1])}"
        for table, row in _rows()
        if row[3] == _LISTENS[table[:3]] and row[2].endswith(":0000")
    }
    unix = (row.split() for row in Path("/proc/net/unix").read_text().splitlines()[1:])
    return found | {f"unix {row[7]}" for row in unix if len(row) > 7 and row[7].startswith("@")}


def _rows() -> Iterator[tuple[str, list[str]]]:
    for table in _TABLES:
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            yield table, line.split()


def _address(written: str) -> str:
    """Return an address of /proc/net, which has words of 32 bits in machine byte order."""
    digits, port = written.split(":")
    words = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    host = socket.inet_ntop(family, struct.pack(f"={len(words)}I", *words))
    return f"{host.removeprefix('::ffff:')}|{int(port, 16)}"


def _is_loopback(name: str) -> bool:
    kind, _, address = name.partition(" ")
    return kind != "unix" and ip_address(address.partition("|")[0]).is_loopback
