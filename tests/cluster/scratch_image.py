"""ScratchImage: the steps of a Dockerfile, run inside a root folder without a Docker daemon.

The base is a minimal Debian made by debootstrap. Layers, caches and registries are not reproduced.
"""

import os
import re
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
_ENTER = """
set -eu
root=$1; shift
for name in proc sys dev; do mkdir -p "$root/$name"; done
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs -o size=2g tmpfs "$root/dev/shm"
exec "$@"
"""


@dataclass(kw_only=True, slots=True)
class ScratchImage:
    """An image that is built step by step, in which commands can then be run."""

    root: Path
    """Folder that is `/` inside the image."""
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/bin:/bin:/usr/sbin"})
    user: str = "root"
    folder: str = "/"
    check: Sequence[str] = ()
    """Command of the health check."""
    seconds: dict[str, float] = field(default_factory=dict)
    """Duration of each step, by the first words of the step."""

    @classmethod
    def build(cls, context: Path, root: Path) -> "ScratchImage":  # noqa: C901  a case per step
        """Run every step of the Dockerfile of a folder.

        Args:
            context: Folder of the Dockerfile; files listed in `.dockerignore` are not copied.
            root: Folder for the image, which must not exist.

        Raises:
            NotImplementedError: If a step is of a kind that is not supported here.
        """
        image = cls(root=root)
        for kind, text in steps((context / "Dockerfile").read_text()):
            began = time.monotonic()
            match kind:
                case "ARG" | "VOLUME" | "CMD" | "ENTRYPOINT":
                    continue
                case "FROM":
                    _bootstrap(root)
                case "ENV":
                    for entry in shlex.split(text):
                        name, value = entry.split("=", 1)
                        image.environment[name] = value.replace("$PATH", image.environment["PATH"])
                case "RUN":
                    image.run("/bin/sh", "-c", text)
                case "COPY":
                    _copy(context, *text.split(), root=root)
                case "USER":
                    image.user = text
                case "WORKDIR":
                    image.folder = text
                case "HEALTHCHECK":
                    image.check = re.findall(r'"([^"]+)"', text.partition("CMD")[2])
                case _:
                    raise NotImplementedError(kind)
            name = f"{kind} {' '.join(text.split()[:4])}"
            if kind in {"FROM", "RUN", "COPY"}:
                image.seconds[name] = round(time.monotonic() - began, 1)
        return image

    def run(self, *command: str, code: int = 0, **variables: str) -> str:
        """Run a command inside the image as its user, and return its output.

        Args:
            command: The command.
            code: Exit code that is required.
            variables: Additional environment variables.
        """
        known = {**self.environment, **variables, "HOME": f"/home/{self.user}"}
        if self.user == "root":
            known["HOME"] = "/root"
        inside = f'cd {self.folder} && exec "$@"'
        done = subprocess.run(
            [
                "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _ENTER,
                "enter", str(self.root),
                "chroot", f"--userspec={self.user}:{self.user}", str(self.root),
                "env", "-i", *(f"{name}={value}" for name, value in known.items()),
                "/bin/sh", "-c", inside, "sh", *command,
            ],
            check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout[-4000:]}"
        return done.stdout


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield kind and text of each step of a Dockerfile."""
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        kind, _, rest = line.partition(" ")
        yield kind, rest.strip()


def _bootstrap(root: Path) -> None:
    """Fill the root with a minimal Debian that trusts the certificates of this machine."""
    command = ["debootstrap", "--variant=minbase", "bookworm", str(root)]
    subprocess.run(command, check=True, capture_output=True)
    (root / "etc" / "resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    (root / "etc" / "hosts").write_text(Path("/etc/hosts").read_text())
    authorities = root / "usr" / "local" / "share" / "ca-certificates"
    authorities.mkdir(parents=True)
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    for number, part in enumerate(AUTHORITIES.read_text().split(begin)[1:]):
        (authorities / f"{number}.crt").write_text(begin + part.split(end)[0] + end + "\n")
    pip = root / "etc" / "pip.conf"
    pip.write_text(f"[global]\ncert = {AUTHORITIES}\ntimeout = 180\n")


def _copy(context: Path, source: str, target: str, *, root: Path) -> None:
    """Copy a file or a folder, without the files listed in `.dockerignore`."""
    patterns = (context / ".dockerignore").read_text().split()
    excluded = [f"--exclude={pattern.removeprefix('**/')}" for pattern in patterns]
    place = root / target.lstrip("/")
    place.mkdir(parents=True, exist_ok=True)
    path = f"{context}/" if source == "." else str(context / source)
    command = ["rsync", "--archive", "--chown=root:root", *excluded, path, f"{place}/"]
    subprocess.run(command, check=True, capture_output=True)


def missing_programs() -> list[str]:
    """Return the programs that building an image needs and this machine lacks."""
    needed = ("debootstrap", "rsync", "unshare")
    folders = [*os.environ["PATH"].split(":"), "/usr/sbin"]
    found = [name for name in needed if any(Path(each, name).exists() for each in folders)]
    missing = sorted(set(needed) - set(found))
    return missing if os.geteuid() == 0 else [*missing, "root"]
