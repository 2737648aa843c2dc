"""Retries: what becomes of a run whose process or device failed, and of that device. No Ray."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mixup_core.faults import fault_of
from sweeps.study.study import Run

_PROCESS_DEATHS = 3
"""Deaths of its process after which a run is tried again; another one is its failure."""
_MEMORY_TRIES = 4
"""Tries of a run that lacks memory beside others."""
_RUNS_IN_A_ROW = 2
"""Different runs that fail one after another on a device before it gets no more."""
_DEVICES = 2
"""Different devices on which a run fails before that is its own fault."""

REDUCE = "reduce batch_size, the network or the image size, or use a machine with more memory"
"""Advice for a run that lacks memory."""

_DEVICE_FAULT = re.compile(r"DeviceFaultError: (.*?): (\[[^\]]*\]): (.*)")
_KERNEL_FAULT = re.compile(r"KernelFaultError: (.*)")
NODE_HAS_DIED = "its node has died"
"""In what Ray says of the processes of a lost node."""
_NODE_DIED = (NODE_HAS_DIED, "node has died", "node was preempted", "NodeDiedError")
_NO_REASON = "Ray kept no reason: the process was killed, or the disk for temporary files is full"
_KILLED_BY_RAY = re.compile(r"Memory usage (\d+)B exceeded threshold of (\d+)B")


class DeviceFaultError(Exception):
    """A GPU, or the driver of its node, that failed a run; the text names it and its error."""

    def __init__(self, device: str, name: str, cause: str) -> None:
        """Name the device.

        Args:
            device: Identity, see `device_id`.
            name: For people.
            cause: First line of the error.
        """
        super().__init__(f"{name}: [{device}]: {cause}")
        self.device = device

    def __reduce__(self) -> tuple[object, ...]:
        """Let the error pass between processes."""
        name, device, cause = str(self).split(": ", 2)
        return type(self), (device.strip("[]"), name, cause)


class KernelFaultError(Exception):
    """Error of a run on a GPU after which its process is of no use; the run is to blame."""


def device_id(place: Mapping[str, str], *, is_node: bool = False) -> str:
    """Return the identity of the GPU that a run has, or of its whole node."""
    return place.get("node", "") if is_node else f"{place.get('node', '')}/{place.get('gpus', '')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineFault:
    """A fault that ended a try of a run, and its process."""

    kind: Literal["memory", "device", "node", "process", "kernel"]
    cause: str
    """One line."""
    device: str | None = None
    """Identity of the device that failed."""
    name: str = ""
    """Name of the device, for people."""

    @classmethod
    def of(cls, text: str, *, was_killed_for_memory: bool = False) -> "MachineFault":
        """Return the fault that the text of an error describes.

        Args:
            text: As an engine gives it.
            was_killed_for_memory: Whether the system has killed a process for lack of memory since.
        """
        lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
        if found := _DEVICE_FAULT.search(text):
            name, device, cause = found.groups()
            return cls(kind="device", cause=cause, device=device.strip("[]"), name=name)
        if own := _KERNEL_FAULT.search(text):
            return cls(kind="kernel", cause=own[1])
        if any(words in text for words in _NODE_DIED):
            return cls(kind="node", cause="its node has gone")
        if killed := _KILLED_BY_RAY.search(text):
            used, allowed = (int(count) / 1e9 for count in killed.groups())
            return cls(
                kind="memory",
                cause=f"Ray killed its process, as its node used {used:.1f} GB and may use "
                f"{allowed:.1f} GB",
            )
        last = lines[-1] if lines else _NO_REASON
        if fault_of(text) == "memory":
            told = (line for line in reversed(lines) if fault_of(line) == "memory")
            return cls(kind="memory", cause=next(told, last))
        if was_killed_for_memory:
            return cls(kind="memory", cause="the system killed its process")
        return cls(kind="process", cause=last)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryDecision:
    """The decision about a fault."""

    again: bool
    """True if the run is tried again."""
    message: str
    """One sentence on the run."""
    note: str = ""
    """One sentence on the launch, if it goes on otherwise than before."""


@dataclass(kw_only=True, slots=True)
class Retries:
    """Decides about faults, and knows which devices get no more runs."""

    limit: int
    """Runs side by side; lowered where they lack memory together."""
    on_gpu: bool = False
    sick: dict[str, str] = field(default_factory=dict)
    """Identity to name of the devices that get no more runs."""
    _in_a_row: dict[str, list[str]] = field(default_factory=dict)
    """Device to the keys of the runs that it has failed since it last finished one."""
    _devices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Key of a run to identity and name of the devices that have failed it."""
    _tries: dict[str, dict[str, int]] = field(default_factory=dict)
    """Key of a run to the number of its faults by kind."""

    def avoided(self, run: Run) -> frozenset[str]:
        """Return the devices that a run is not to be trained on: all that failed it, all sick."""
        return frozenset((*self.sick, *self._devices.get(run.key, ())))

    def attempts(self, run: Run) -> int:
        """Return the number of tries of a run that have ended by a fault."""
        return sum(self._tries.get(run.key, {}).values())

    def finish(self, device: str | None) -> None:
        """Note that a device has finished a run."""
        self._in_a_row.pop(device or "", None)

    def judge(self, run: Run, fault: MachineFault, *, beside: int, devices: int) -> RetryDecision:
        """Decide whether a run is tried again after a fault.

        Args:
            run: The run that met it.
            fault: What it met.
            beside: Other runs in training at the same time.
            devices: Of the launch.
        """
        counts = self._tries.setdefault(run.key, {})
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
        match fault.kind:
            case "node":  # pre-empted or lost: never the run's failure
                return RetryDecision(again=True, message=fault.cause)
            case "kernel":
                return RetryDecision(again=False, message=fault.cause)
            case "memory":
                return self._judge_memory(counts["memory"], fault, beside)
            case "device":
                return self._judge_device(run, fault, devices)
            case "process":
                pass
        times = counts["process"]
        if times <= _PROCESS_DEATHS:
            return RetryDecision(again=True, message=fault.cause)
        return RetryDecision(
            again=False, message=f"its process failed {times} times; the last time: {fault.cause}"
        )

    def _judge_memory(self, times: int, fault: MachineFault, beside: int) -> RetryDecision:
        if self.on_gpu:
            if times == 1:  # a process that has hosted other runs holds memory
                return RetryDecision(again=True, message=fault.cause)
            return RetryDecision(
                again=False,
                message=f"lacks memory: {fault.cause}; reduce batch_size or the network, or give "
                "each run more of a GPU by --gpus-per-run",
            )
        if beside and times < _MEMORY_TRIES:
            note = ""
            if self.limit > max(1, beside):
                self.limit = max(1, beside)
                note = f"memory is short: at most {self.limit} runs side by side from here on"
            return RetryDecision(again=True, message=f"lacks memory: {fault.cause}", note=note)
        if times == 1 and "killed" not in fault.cause:  # a fresh process may have it
            return RetryDecision(again=True, message=f"lacks memory: {fault.cause}")
        return RetryDecision(
            again=False,
            message=f"lacks memory even by itself: {fault.cause}; {REDUCE}",
        )

    def _judge_device(self, run: Run, fault: MachineFault, devices: int) -> RetryDecision:
        assert fault.device is not None, "the fault of a device names it"
        seen = self._devices.setdefault(run.key, {})
        is_known = fault.device in seen
        seen[fault.device] = fault.name
        if len(seen) >= _DEVICES or (is_known and devices <= 1):
            for failed in self._in_a_row.values():  # the devices are not to blame
                while run.key in failed:
                    failed.remove(run.key)
            places = "two different devices" if len(seen) >= _DEVICES else "the only device, twice"
            named = " and ".join(dict.fromkeys(seen.values()))
            return RetryDecision(
                again=False, message=f"failed on {places} ({named}), the last time: {fault.cause}"
            )
        failed = self._in_a_row.setdefault(fault.device, [])
        if run.key not in failed:
            failed.append(run.key)
        note = ""
        if len(failed) >= _RUNS_IN_A_ROW and fault.device not in self.sick:
            self.sick[fault.device] = fault.name
            note = (
                f"{fault.name} failed {len(failed)} different runs in a row and gets no more; "
                f"the last time: {fault.cause}"
            )
        message = f"{fault.name}: {fault.cause}"
        if devices > 1 and len(self.avoided(run)) >= devices:
            return RetryDecision(
                again=False, message=f"no other device is left; {message}", note=note
            )
        return RetryDecision(again=True, message=message, note=note)


def oom_kills() -> int:
    """Return how many processes the system has killed for lack of memory where this one runs."""
    total = 0
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        version_1 = Path("/sys/fs/cgroup/memory")
        if controllers == "memory":
            places = [version_1 / path.lstrip("/"), version_1]
            total += _first_count(place / "memory.oom_control" for place in places)
        elif not controllers:
            top = Path("/sys/fs/cgroup")
            places = [top / path.lstrip("/"), top]
            total += _first_count(place / "memory.events" for place in places)
    return total


def _first_count(files: Iterator[Path]) -> int:
    for file in files:
        if found := re.search(r"^oom_kill (\d+)$", _text(file), re.MULTILINE):
            return int(found[1])
    return 0


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
