"""Slurm: a real controller and real node daemons on hosts.

The GPUs of a node are ordinary files.
"""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.faults.launches import wait_for
from tests.hosts.host import Host, call, detach, plain_environment

DAEMONS = ("slurmctld", "slurmd", "munged", "sbatch")
GPUS_PER_NODE = 4
_FIRST_NODE = 51
_CONTROLLER = 50
_CONFIGURATION = """\
ClusterName=hosts
SlurmctldHost=login(10.77.0.50)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=2,bf_interval=2
GresTypes=gpu
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n/slurmd.log
SlurmdTimeout=15
KillWait=5
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE OverTimeLimit=0 State=UP
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Slurm:
    """A cluster with a login host, which also runs the controller, and nodes."""

    folder: Path
    login: Host
    nodes: Sequence[Host]

    @classmethod
    def start(cls, folder: Path, num_nodes: int) -> Self:
        """Start a cluster and return it once all its nodes are idle.

        Args:
            folder: Folder of the cluster; its path must be short, because it contains sockets.
            num_nodes: Number of nodes, named n1, n2, and so on.
        """
        names = [f"n{index + 1}" for index in range(num_nodes)]
        addresses = [f"10.77.0.{_FIRST_NODE + index}" for index in range(num_nodes)]
        _write_configuration(folder, dict(zip(names, addresses, strict=True)))
        login = _start_host(folder / "login", _CONTROLLER)
        _begin(
            login, folder, "munged", "--force", "--foreground", "--num-threads=2",
            *(f"--{file}={folder}/munge/{name}" for file, name in _MUNGE_FILES.items()),
        )  # fmt: skip
        wait_for((folder / "munge" / "socket").exists)
        _begin(login, folder, "slurmctld", "-D", "-i")
        nodes = [_start_host(folder / name, _FIRST_NODE + n) for n, name in enumerate(names)]
        slurm = cls(folder=folder, login=login, nodes=nodes)
        for node in nodes:
            _begin(node, folder, "slurmd", "-D", "-N", node.name)
        wait_for(lambda: slurm.states() == ["idle"] * num_nodes)
        return slurm

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that Slurm's commands need."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf")}

    def ask(self, *command: str) -> str:
        """Return the output of a Slurm command on the login host."""
        return subprocess.run(
            self.login.enter(*command), env=plain_environment(**self.environment), check=True,
            text=True, capture_output=True, timeout=60,
        ).stdout  # fmt: skip

    def states(self) -> list[str]:
        """Return the states of the nodes, n1 first; empty until the controller answers."""
        try:
            said = self.ask("sinfo", "--noheader", "--Node", "--format=%T")
        except subprocess.CalledProcessError:
            return []
        return said.split()

    def jobs(self, state: str = "all") -> list[str]:
        """Return the numbers of all jobs in a state."""
        return self.ask("squeue", "--noheader", f"--states={state}", "--format=%A").split()

    def job(self, number: str) -> dict[str, str]:
        """Return the controller's description of a job."""
        said = self.ask("scontrol", "--oneliner", "show", "job", number).split()
        return dict(word.split("=", 1) for word in said if "=" in word)

    def processes(self, name: str) -> list[str]:
        """Return the nodes on which a process with a name runs."""
        found = (
            subprocess.run(node.enter("pgrep", name), check=False, stdout=subprocess.DEVNULL)
            for node in self.nodes
        )
        return [
            node.name for node, done in zip(self.nodes, found, strict=True) if not done.returncode
        ]

    def stop(self) -> None:
        """Stop all hosts of the cluster."""
        for host in (*self.nodes, self.login):
            host.kill()


_MUNGE_FILES = {
    "key-file": "key", "socket": "socket", "pid-file": "pid",
    "log-file": "log", "seed-file": "seed",
}  # fmt: skip


def missing_programs() -> Sequence[str]:
    """Return the programs of Slurm and munge that are not installed."""
    path = "/usr/sbin:/usr/bin:/sbin:/bin"
    return [name for name in DAEMONS if shutil.which(name, path=path) is None]


def _write_configuration(folder: Path, nodes: dict[str, str]) -> None:
    """Write the files of Slurm and munge; each GPU needs a file, whatever its content."""
    for name in ("munge", "state", "gpus", *(f"{node}/spool" for node in nodes)):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "munge").chmod(0o711)
    key = folder / "munge" / "key"
    key.write_bytes(bytes(range(128)))
    key.chmod(0o600)
    for index in range(GPUS_PER_NODE):
        (folder / "gpus" / f"nvidia{index}").touch()
    described = "\n".join(
        f"NodeName={name} NodeAddr={ip} CPUs=32 RealMemory=4000 Gres=gpu:{GPUS_PER_NODE}"
        for name, ip in nodes.items()
    )
    text = _CONFIGURATION.format(folder=folder, nodes=described)
    (folder / "slurm.conf").write_text(text)
    files = f"{folder}/gpus/nvidia[0-{GPUS_PER_NODE - 1}]"
    (folder / "gres.conf").write_text(f"AutoDetect=off\nName=gpu File={files}\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n")
    # As Debian installs a machine: its own name leads to a loopback address.
    for host in ("login", *nodes):
        (folder / host).mkdir(exist_ok=True)
        others = [f"{ip} {name}" for name, ip in nodes.items() if name != host]
        lines = ["127.0.0.1 localhost", f"127.0.1.1 {host}", "10.77.0.50 login", *others]
        (folder / host / "hosts").write_text("\n".join(lines) + "\n")


def _start_host(folder: Path, number: int) -> Host:
    """Start a host with its own file of host names."""
    host = Host.start(folder, number)
    call(*host.enter("mount", "--bind", str(folder / "hosts"), "/etc/hosts"))
    return host


def _begin(host: Host, folder: Path, *command: str) -> None:
    """Start a daemon on a host; it ends with the host."""
    log = host.folder / f"{command[0]}.out"
    environment = plain_environment(SLURM_CONF=str(folder / "slurm.conf"))
    detach(*host.enter(*command), log=log, environment=environment)
