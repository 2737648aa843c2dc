"""Host: a simulated machine made of namespaces, with its own processes, network and name.

All hosts of a test are on one network bridge, which is not connected to any other network. They
share disk and CPUs.
"""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

BRIDGE = "hosts0"
OUTSIDE = "10.77.0.1"
"""Address of the namespace that contains the hosts."""

_BOOT = """
set -eu
hostname "$1"
mount --bind "$2/ray" /tmp/ray
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep .02; done
ip addr add "$3/24" dev eth0
ip link set eth0 up
ip route add default via 10.77.0.1
touch "$2/up"
sleep infinity & wait
"""
"""Shell script of process 1 of a host, which reaps orphaned processes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """A started host; everything about it is in its folder."""

    folder: Path

    @property
    def name(self) -> str:
        """Host name."""
        return self.folder.name

    @property
    def ip(self) -> str:
        """Address on the bridge."""
        return (self.folder / "ip").read_text()

    @property
    def home(self) -> Path:
        """Home folder of a user on the host."""
        return self.folder / "home"

    @property
    def is_up(self) -> bool:
        """True while process 1 of the host lives."""
        with suppress(OSError, ValueError):
            state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
            return state != "Z"
        return False

    @property
    def _pid(self) -> int:
        return int((self.folder / "pid").read_text())

    @classmethod
    def start(cls, folder: Path, number: int) -> Self:
        """Start a host and return it once its network is up; its name is that of its folder.

        Args:
            folder: Folder of the host, created if missing.
            number: Last part of its address, 2 to 254.
        """
        host = cls(folder=folder)
        for part in ("ray", "home"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "up").unlink(missing_ok=True)
        ip = f"10.77.0.{number}"
        (folder / "ip").write_text(ip)
        namespaces = ("--net", "--pid", "--mount", "--uts", "--fork", "--mount-proc")
        unshare = detach(
            "unshare", *namespaces, "--kill-child", "bash", "-c", _BOOT, "boot",
            folder.name, str(folder), ip, log=folder / "boot.log",
        )  # fmt: skip
        process = Path(f"/proc/{unshare}")
        while not (pid := (process / f"task/{unshare}/children").read_text().strip()):
            time.sleep(0.01)
        (folder / "pid").write_text(pid)
        outside = f"host{number}"
        # The link of a host that had the number may outlive it by a moment.
        subprocess.run(["ip", "link", "delete", outside], check=False, capture_output=True)
        call("ip", "link", "add", outside, "type", "veth", "peer", "eth0", "netns", pid)
        call("ip", "link", "set", outside, "master", BRIDGE, "up")
        while not (folder / "up").exists():
            assert process.exists(), (folder / "boot.log").read_text()
            time.sleep(0.01)
        return host

    def enter(self, *command: str) -> list[str]:
        """Return a command line that runs a command on this host."""
        inside = ("--net", "--pid", "--mount", "--uts")
        return ["nsenter", "--target", str(self._pid), *inside, "--", *command]

    def kill(self) -> None:
        """Kill the host with all its processes at once."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        while self.is_up:
            time.sleep(0.02)


def build_bridge(ray_folder: Path) -> None:
    """Create the bridge of the hosts in this namespace, and a Ray folder for this namespace.

    The default route leads nowhere; Ray needs it to find its own address.
    """
    ray_folder.mkdir()
    Path("/tmp/ray").mkdir(exist_ok=True)
    call("mount", "--bind", str(ray_folder), "/tmp/ray")
    call("ip", "link", "add", BRIDGE, "type", "bridge")
    call("ip", "addr", "add", f"{OUTSIDE}/24", "dev", BRIDGE)
    call("ip", "link", "set", BRIDGE, "up")
    call("ip", "route", "add", "default", "dev", BRIDGE)


def call(*command: str) -> None:
    """Run a command that must succeed, without output."""
    subprocess.run(command, check=True, capture_output=True, text=True)


def detach(*command: str, log: Path, environment: Mapping[str, str] | None = None) -> int:
    """Start a command that outlives its parent, and return its process id."""
    started = subprocess.run(
        ["setsid", "bash", "-c", '"$@" </dev/null >"$0" 2>&1 & echo $!', str(log), *command],
        check=True, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    return int(started.stdout)


def plain_environment(**variables: str) -> Mapping[str, str]:
    """Return the environment of a host, without variables of Ray, MLflow or mixsweep."""
    dropped = ("RAY_", "MLFLOW_", "MIX", "TMPDIR", "SLURM", "CUDA_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return {**kept, "OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", **variables}


def hosts_in(folder: Path) -> Sequence[Host]:
    """Return the running hosts, by name."""
    found = (Host(folder=path.parent) for path in sorted(folder.glob("*/pid")))
    return [host for host in found if host.is_up]
