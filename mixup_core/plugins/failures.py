"""Failures: error messages that name the plugin and the line at which an error arose."""

import traceback
from collections.abc import Collection, Iterable
from pathlib import Path

from mixup_core.plugins.source import Source
from mixup_core.rules import printable

_MODULE = "<module>"


def what_happened(error: BaseException, place: str | Path) -> str:
    """Return line and text of an error in a plugin: ` in line 60 (read): RuntimeError: no images`.

    The line is left out if the traceback does not pass through the plugin.
    """
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_below(f.filename, place)]
    line, function = (frames[-1].lineno, frames[-1].name) if frames else (None, _MODULE)
    if isinstance(error, SyntaxError):
        line, function = error.lineno, _MODULE
    file = f" of {Path(frames[-1].filename).name}" if frames and Path(place).is_dir() else ""
    where = "" if line is None else f" in line {line}{file}"
    where += "" if function == _MODULE else f" ({function})"
    return f"{where}: {type(error).__name__}: {_text(error)}"


def failure_of_plugin(
    error: BaseException, loaded: Iterable[Source], used: Collection[str] = ()
) -> str | None:
    """Return the message of an error that a plugin caused; None if no plugin is involved.

    The message names the plugin whose code is in the innermost frame, even if that plugin called
    back into this package. If no frame belongs to a plugin (a layer of a plugin's network
    fails inside torch, for example), it names the plugins that the run uses.
    """
    sources, frames = tuple(loaded), traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        for source in sources:
            if place := source.holds(frame.filename):
                return _message(source.name, f"fails{what_happened(error, place)}")
    if not used:
        return None
    where = f"{Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""
    return _message(
        " and ".join(sorted(used)),
        f"a run that uses it fails in {where} ({type(error).__name__}: {_text(error)})",
    )


def _message(plugin: str, what: str) -> str:
    return f"plugin {plugin}: {what}; correct it and try it with: mixsweep check {plugin}"


def _is_below(file: str, place: str | Path) -> bool:
    return file == str(place) or Path(place) in Path(file).parents


def _text(error: BaseException) -> str:
    try:
        return printable(str(error.msg if isinstance(error, SyntaxError) else error))
    except Exception:
        return "(the text of this error cannot be produced)"
