"""Provider: implements Ray's interface for cloud providers with hosts made of namespaces.

Everything else is real: Ray's launcher and autoscaler copy files, run set-up and start commands on
each host, and release idle hosts.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray.autoscaler.command_runner import CommandRunnerInterface
from ray.autoscaler.node_provider import NodeProvider
from ray.autoscaler.tags import NODE_KIND_HEAD, TAG_RAY_NODE_KIND

from tests.hosts.host import OUTSIDE, Host, plain_environment

_FIRST_NUMBER = 11


class HostProvider(NodeProvider):
    """Hosts below `provider.folder` of the cluster file.

    The head node is the namespace around them.
    """

    def __init__(self, provider_config: dict[str, Any], cluster_name: str) -> None:
        super().__init__(provider_config, cluster_name)
        self._folder = Path(provider_config["folder"])

    def non_terminated_nodes(self, tag_filters: Mapping[str, str]) -> list[str]:
        with self._nodes() as nodes:
            return [
                name
                for name, tags in nodes.items()
                if tag_filters.items() <= tags.items() and self._is_up(name, tags)
            ]

    def is_running(self, node_id: str) -> bool:
        return node_id in self.non_terminated_nodes({})

    def is_terminated(self, node_id: str) -> bool:
        return not self.is_running(node_id)

    def node_tags(self, node_id: str) -> dict[str, str]:
        with self._nodes() as nodes:
            return dict(nodes[node_id])

    def set_node_tags(self, node_id: str, tags: Mapping[str, str]) -> None:
        with self._nodes() as nodes:
            nodes[node_id] |= tags

    def internal_ip(self, node_id: str) -> str:
        if self.node_tags(node_id)[TAG_RAY_NODE_KIND] == NODE_KIND_HEAD:
            return OUTSIDE
        return Host(folder=self._folder / node_id).ip

    external_ip = internal_ip

    def create_node(self, node_config: Any, tags: Mapping[str, str], count: int) -> None:
        del node_config
        for _ in range(count):
            with self._nodes() as nodes:
                number = _FIRST_NUMBER + len(nodes)
                nodes[f"host-{number}"] = dict(tags)
                if tags[TAG_RAY_NODE_KIND] != NODE_KIND_HEAD:
                    Host.start(self._folder / f"host-{number}", number)

    def terminate_node(self, node_id: str) -> None:
        if self.node_tags(node_id)[TAG_RAY_NODE_KIND] == NODE_KIND_HEAD:
            with self._nodes() as nodes:
                del nodes[node_id]
        else:
            Host(folder=self._folder / node_id).kill()

    def get_command_runner(self, log_prefix: str, node_id: str, *_: Any, **__: Any) -> "HostRunner":
        del log_prefix
        is_head = self.node_tags(node_id)[TAG_RAY_NODE_KIND] == NODE_KIND_HEAD
        return HostRunner(Host(folder=self._folder / node_id), is_head=is_head)

    def _is_up(self, name: str, tags: Mapping[str, str]) -> bool:
        is_head = tags[TAG_RAY_NODE_KIND] == NODE_KIND_HEAD
        return is_head or Host(folder=self._folder / name).is_up

    @contextmanager
    def _nodes(self) -> Iterator[dict[str, dict[str, str]]]:
        """Yield the tags of all nodes so far; both `ray up` and the head change them."""
        with (self._folder / "nodes.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            file = self._folder / "nodes.json"
            nodes = json.loads(file.read_text()) if file.exists() else {}
            yield nodes
            file.write_text(json.dumps(nodes))


class HostRunner(CommandRunnerInterface):
    """Runs commands on a host in place of SSH; their output goes to the log of the host."""

    def __init__(self, host: Host, *, is_head: bool) -> None:
        self._host, self._is_head = host, is_head

    def run(
        self,
        cmd: str | None = None,
        timeout: int = 120,
        exit_on_fail: bool = False,
        port_forward: Any = None,
        with_output: bool = False,
        environment_variables: Mapping[str, object] | None = None,
        run_env: str = "auto",
        ssh_options_override_ssh_key: str = "",
        shutdown_after_run: bool = False,
    ) -> str:
        del exit_on_fail, port_forward, run_env, ssh_options_override_ssh_key, shutdown_after_run
        if cmd is None:
            return ""
        home = self._home()
        variables = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in (environment_variables or {}).items()
        }
        command = ["bash", "-c", cmd]
        with self._turn(cmd), (self._host.folder / "commands.log").open("a") as log:
            log.write(f"$ {cmd}\n")
            log.flush()
            done = subprocess.run(
                command if self._is_head else self._host.enter(*command),
                env=plain_environment(HOME=str(home), **variables), cwd=home, check=True, text=True,
                timeout=timeout, stdin=subprocess.DEVNULL, stderr=log,
                stdout=subprocess.PIPE if with_output else log,
            )  # fmt: skip
        return done.stdout or ""

    @contextmanager
    def _turn(self, command: str) -> Iterator[None]:
        """Wait until no other host starts Ray: `ray start` gives up after 30 seconds, in which two
        CPUs start one host but not eight.
        """
        with (self._host.folder.parent / "start.lock").open("w") as lock:
            if "ray start" in command and not self._is_head:
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def run_rsync_up(self, source: str, target: str, options: Any = None) -> None:
        self._copy(os.path.expanduser(source), self._path(target), options or {})  # noqa: PTH111

    def run_rsync_down(self, source: str, target: str, options: Any = None) -> None:
        self._copy(self._path(source), os.path.expanduser(target), options or {})  # noqa: PTH111

    def remote_shell_command_str(self) -> str:
        return " ".join(self._host.enter("bash"))

    def _copy(self, source: str, target: str, options: Mapping[str, Any]) -> None:
        excluded = [f"--exclude={pattern}" for pattern in options.get("rsync_exclude") or ()]
        merged = [f"--filter=dir-merge,- {file}" for file in options.get("rsync_filter") or ()]
        command = ["rsync", "-rltz", *excluded, *merged, source, target]
        subprocess.run(command, check=True, capture_output=True, text=True)

    def _path(self, path: str) -> str:
        home = self._home()
        return str(home / path.removeprefix("~/")) if path.startswith("~") else path

    def _home(self) -> Path:
        home = self._host.home
        if not (home / ".venv").exists():
            link_environment(home / ".venv")
        return home


def link_environment(folder: Path) -> None:
    """Create a virtual environment with the packages of this one, like a machine image.

    Its `pip` installs nothing, because hosts cannot reach an index; it only records its arguments.
    """
    (folder / "bin").mkdir(parents=True)
    for path in Path(sys.prefix).iterdir():
        if path.name != "bin":
            (folder / path.name).symlink_to(path)
    for program in ("python", "python3", "ray", "mixsweep"):
        (folder / "bin" / program).symlink_to(Path(sys.prefix, "bin", program))
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\necho "$@" >>{folder}/pip.log\n')
    pip.chmod(0o755)
