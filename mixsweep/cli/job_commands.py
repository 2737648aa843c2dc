"""Job commands: the shell commands that a job runs, and those that follow, stop and fetch it."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mixsweep.request import Request
from sweeps.running.jobs import accepts_no_token, certificates


def given(options: Mapping[str, object]) -> Iterator[str]:
    """Yield the options that have a value, and these values, as arguments of a command."""
    for name, value in options.items():
        if value is not None:
            yield from (name, str(value))


def spell_entrypoint(arguments: Sequence[str]) -> str:
    """Return the shell command that runs `mixsweep` on the head node."""
    run = shlex.join(["-m", "mixsweep", *arguments])
    python = os.environ.get("MIXSWEEP_PYTHON")
    if python is None:
        interpreter = f'"$(command -v {shlex.quote(sys.executable)} || command -v python)"'
    else:
        interpreter = shlex.quote(python)
    return f"exec {interpreter} {run}"


def spell_advice(address: str, job: str) -> str:
    """Return the Ray commands with which a user follows and stops a job."""
    follow, stop = (
        _ray(address, f"{verb} {shlex.quote(job)}") for verb in ("logs --follow", "stop")
    )
    return f"follow    {follow}\nstop      {stop}"


def spell_fetch(address: str, request: Request, places: Mapping[str, str]) -> str:
    """Return the command that copies a study's report and archive from the home on the cluster."""
    study, home = request.study.name, shlex.quote(places["--home"])
    changes = replace(request, plugins=()).changes()
    stored = given({name: places.get(name) for name in ("--home", "--store")})
    packed = (
        f"{spell_entrypoint(['share', study, *changes, *stored]).removeprefix('exec ')}; "
        f"tar -cz -C {home} reports/{study} exports/{study}.mixsweep.zip | base64"
    )
    return (
        f"{_ray(address, 'submit')} -- sh -c {shlex.quote(packed)} "
        "| grep -v '[^A-Za-z0-9+/=]' | base64 -d | tar -xz"
    )


def _ray(address: str, command: str) -> str:
    """Return a command line of `ray job` for a cluster, with this user's token and certificates."""
    path, trusted = os.environ.get("RAY_AUTH_TOKEN_PATH"), certificates()
    token = "" if path is None else f" RAY_AUTH_TOKEN_PATH={shlex.quote(path)}"
    mode = "" if accepts_no_token() else f"RAY_AUTH_MODE=token{token} "
    verify = "" if trusted is None else f" --verify {shlex.quote(trusted)}"
    return f"{mode}ray job {command} --address {address}{verify}"
