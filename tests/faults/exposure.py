"""Exposure: sockets of this namespace that others could reach, and folders open to them."""

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Self

import psutil
import ray

ROUTABLE = "10.9.8.7"
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
    """Sockets to which others may send, such as `127.0.0.1 SOCK_STREAM 80` or the Unix `@name`."""
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
        self._thread.join()

    @property
    def reachable(self) -> set[str]:
        """Sockets that other machines, or other users of this machine, can reach."""
        return {name for name in self.listening if not _is_loopback(name)}

    def _look(self) -> None:
        while not self._stop.wait(_EVERY):
            self.listening |= _listening() - self._before


def _listening() -> set[str]:
    found = set()
    for each in psutil.net_connections("all"):
        if each.family == socket.AF_UNIX:
            found |= {each.laddr} if each.laddr.startswith("@") else set()
        elif each.status == psutil.CONN_LISTEN or (each.laddr and not each.raddr):
            host, port = each.laddr
            found.add(f"{host.removeprefix('::ffff:')} {each.type.name} {port}")
    return found


def _is_loopback(name: str) -> bool:
    return not name.startswith("@") and ip_address(name.partition(" ")[0]).is_loopback
