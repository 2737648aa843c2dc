"""Study files: read YAML and `--set` options into a checked `Study`; report all faults at once."""

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from yaml.representer import RepresenterError

from mixup_core.addresses import local_path, store_address
from mixup_core.config.catalogue import NAME
from mixup_core.keys import stage_keys
from mixup_core.plugins.loading import load_installed, use
from mixup_core.plugins.stand_ins import put_in, stand_ins_of
from mixup_core.problem import KnownData
from mixup_core.rules import printable
from mixup_core.store.checkpoints import Store
from sweeps.reading.strict_yaml import (
    MAX_BYTES,
    Document,
    Mistake,
    Place,
    dotted,
    read_value,
    read_yaml,
    write_yaml,
)
from sweeps.reading.study_reader import StudyReader, paths_of
from sweeps.reading.tree_reader import did_you_mean, named
from sweeps.state.ledger import Launch, known_data, launches, stored_launch
from sweeps.study.study import Study

_MOST_TOLD = 30
"""Largest number of faults that one message lists."""
_CONFIGURED = ("problem", "base", "grid", "zip", "exclude", "search")
"""Keys of a study file, besides `arms`, that contain parts of configurations."""


class StudyError(Exception):
    """A study cannot be read; the message lists its faults, one per line."""

    def __init__(self, faults: Sequence[str], whole: Sequence[str] = ()) -> None:
        self.faults = tuple(faults)
        self.whole = tuple(whole) or self.faults
        """The faults with all accepted values; `faults` may name only some of them."""
        listed = self.faults[:_MOST_TOLD]
        if more := len(self.faults) - len(listed):
            listed = (*listed, f"... {more:,} more faults")
        super().__init__("\n".join(listed))

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.faults, self.whole)


def study_of(document: Mapping[str, Any], overrides: Sequence[str] = ()) -> Study:
    """Return the study that a mapping describes, checked like a study file.

    No file that its `plugins` name is loaded.
    """
    try:
        content = write_yaml(dict(document)).encode()
    except RepresenterError as error:
        value = error.args[-1]
        rule = "a value must be text, a number, true, false, null, a list or a mapping"
        got = f"got {value!r} of type {type(value).__name__}"
        raise StudyError([f"study: {rule}, {got}"]) from error
    try:
        return _study(content, "study", Path(), overrides, has_lines=False)
    except StudyError as error:
        if not document.get("plugins"):
            raise
        hint = "study: the plugins of a mapping are loaded by mixsweep.plugins.use(FILE)"
        raise StudyError((hint, *error.faults), (hint, *error.whole)) from None


def load_study(
    reference: str,
    overrides: Sequence[str] = (),
    store_url: str | None = None,
    *,
    reads_only: bool = False,
) -> Study:
    """Read and check a study, given its name or its file; return the study.

    Neither torch nor Ray is imported, and nothing is written. The files of an image folder are all
    read, because their sha256 is part of the run keys. If the folder is not on this machine, the
    sha256 recorded in the store is used.

    Args:
        reference: Name of a bundled or launched study, or the path of a study file.
        overrides: `PATH=VALUE` texts.
        store_url: Store in which studies may have been launched; None for no store.
        reads_only: If True, no run will be trained, and plugins that are not loaded are replaced by
            what their launch has stored (`mixup_core.plugins.stand_ins`).
    """
    store, known = None, None
    if store_url is not None:
        store = Store(store_url)
        known = partial(known_data, store)
        launch = None if _is_file(reference) else stored_launch(store, reference)
        if launch is not None:
            return study_of_launch(launch, reference, known, overrides, reads_only=reads_only)
    content, name, folder = _content_of(reference, store)
    read = partial(
        _study, content, name, folder, known=known, has_plugins=True, reads_only=reads_only
    )
    try:
        return read(overrides)
    except StudyError:
        study_name = _top(content).get("study")
        launch = None
        if reads_only and store is not None and isinstance(study_name, str):
            launch = stored_launch(store, study_name)
        put_in(() if launch is None else launch.parts)
        if launch is None or not stand_ins_of(launch.source):
            raise
        return _with_stand_ins(read, overrides, launch, name)


def study_of_launch(
    launch: Launch,
    name: str,
    known: Callable[[str], KnownData],
    overrides: Sequence[str] = (),
    *,
    reads_only: bool = False,
) -> Study:
    content, folder = launch.source.encode(), Path(launch.folder)
    read = partial(
        _study, content, name, folder, known=known, only_known=True, reads_only=reads_only
    )
    if reads_only:
        return _with_stand_ins(read, overrides, launch, name)
    try:
        return read(overrides)
    except StudyError as error:
        raise _with_plugins_named(error, launch, name) from None


def plugin_options(launch: Launch) -> tuple[str, ...]:
    """Return a launch's `--plugin FILE` options, and options for files that its study names."""
    options = re.findall(r"--plugin(?:=| )(?:'[^']*'|\S+)", printable(launch.command))
    files = _top(launch.source.encode()).get("plugins")
    paths = [Path(launch.folder, str(file)) for file in files] if isinstance(files, list) else []
    return (*options, *(f"--plugin {shlex.quote(printable(str(file)))}" for file in paths))


def _top(content: bytes) -> Mapping[str, Any]:
    """Return the keys at the top of a study file; none if it is not a mapping."""
    value = read_yaml(content, lambda line: Place(source="", line=line)).value
    return value if isinstance(value, dict) else {}


def _with_stand_ins(
    read: Callable[[Sequence[str]], Study], overrides: Sequence[str], launch: Launch, name: str
) -> Study:
    """Read a study with stand-ins for plugins; check that its keys are those of the launch."""
    put_in(launch.parts)
    try:
        study = read(overrides)
        if not stand_ins_of(study.source):
            return study
        as_launched = read(()) if overrides else study
    except StudyError as error:
        raise _with_plugins_named(error, launch, name) from None
    if launch.settings not in {study.settings, as_launched.settings}:
        fault = StudyError([f"{name}: this study has other settings than its launch"])
        raise _with_plugins_named(fault, launch, name)
    launched = {text.partition(" ")[0] for text in launch.runs}
    run_of_arm = {run.arm: run for run in as_launched.runs() if run.key in launched}
    if not {stage_keys(run.config)[-1] for run in run_of_arm.values()} <= {*launch.ends}:
        fault = StudyError([f"{name}: its plugin decides the settings of single epochs"])
        raise _with_plugins_named(fault, launch, name)
    return study


def _with_plugins_named(error: StudyError, launch: Launch, name: str) -> StudyError:
    """Return an error that first names the plugins of a launch, if it has any."""
    options = plugin_options(launch)
    if not options:
        return error
    message = (
        f"{name}: this study was launched with {' '.join(options)}; add this option "
        "(in Python: mixsweep.plugins.use(FILE))"
    )
    return StudyError((message, error.faults[0].partition("; ")[0]))


def _study(  # noqa: PLR0913  what a study is read from
    content: bytes,
    name: str,
    folder: Path,
    overrides: Sequence[str],
    known: Callable[[str], KnownData] | None = None,
    *,
    only_known: bool = False,
    reads_only: bool = False,
    has_lines: bool = True,
    has_plugins: bool = False,
) -> Study:
    document = read_yaml(content, lambda line: Place(source=name, line=line if has_lines else None))
    if isinstance(document.value, dict):
        if has_plugins:
            _load_plugins(document.value.get("plugins"), name, folder)
        load_installed(words_of(document.value, overrides))
        for text in overrides:
            override(document, text)
    study = StudyReader(document, folder, known, only_known=only_known).study()
    if study is not None and not reads_only and (gone := stand_ins_of(study.source)):
        advice = f"add --plugin {gone[0]} (in Python: mixsweep.plugins.use(FILE))"
        raise StudyError([f"{name}: the plugin {gone[0]} is not loaded; {advice}"])
    if study is None:
        faults = sorted(document.faults, key=lambda fault: fault.place.line or math.inf)
        whole = (fault.spelled(fault.whole or fault.text) for fault in faults)
        raise StudyError(tuple(dict.fromkeys(map(str, faults))), tuple(dict.fromkeys(whole)))
    return study


def _load_plugins(files: object, name: str, folder: Path) -> None:
    for file in files if isinstance(files, list) else ():
        if not isinstance(file, str):
            continue  # the reader reports it
        place = folder / file
        if not place.resolve().is_relative_to(folder.resolve()):
            text = f"{name}: plugins: {file} is outside of the folder of the study; move it there,"
            raise StudyError([f"{text} or leave it out and add --plugin FILE to each command"])
        use(place)


def _is_file(reference: str) -> bool:
    """Return True if a reference names a bundled study or an existing file; False for a folder."""
    try:
        return reference in bundled_names() or local_path(reference).is_file()
    except OSError:
        return True


def bundled_names() -> list[str]:
    """Return the sorted names of the studies shipped with mixsweep, without reading their files."""
    files = resources.files("sweeps.studies").iterdir()
    return sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))


def _spell_launched(reference: str, launched: Sequence[Launch], store: Store) -> str:
    """Return a sentence about the studies of a store, for a message that a study is not there."""
    place = store_address(store.url)
    if store.is_absent:
        return f"the store {place} does not exist"
    if not launched:
        return f"no study was launched in the store {place}"
    name = reference.partition("@")[0]
    settings = [launch.settings[:8] for launch in launched if launch.study == name]
    if settings:
        return f"{name} was launched in the store {place} with the settings {', '.join(settings)}"
    names = dict.fromkeys(launch.study for launch in launched)
    return f"launched in the store {place} are {named(name, names)}"


def _content_of(reference: str, store: Store | None) -> tuple[bytes, str, Path]:
    bundled = bundled_names()
    if reference in bundled:
        name = f"{reference}.yaml"
        return resources.files("sweeps.studies").joinpath(name).read_bytes(), name, Path()
    path = local_path(reference)
    try:
        if path.is_file():
            with path.open("rb") as stream:
                return stream.read(MAX_BYTES + 1), reference, path.parent
        problem = "is a folder" if path.is_dir() else "is no regular file" if path.exists() else ""
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
    launched = [] if store is None else launches(store)
    launched_text = "" if store is None else f"; {_spell_launched(reference, launched, store)}"
    if problem:
        text = f"{problem}; expected a study file{launched_text}"
    else:
        hint = did_you_mean(path.stem, [*(launch.study for launch in launched), *bundled])
        if "=" in reference:
            hint = f" (a setting needs its own --set: --set {reference})"
        text = f"no such file or bundled study{hint}; `mixsweep studies` lists these{launched_text}"
    raise StudyError((str(Mistake(place=Place(source=reference), path="", text=text)),))


def words_of(study: Mapping[str, Any], overrides: Sequence[str]) -> frozenset[str]:
    """Return the words of a study file and of `--set` options that may name a part of a plugin."""
    arms = study.get("arms")
    of_arms = list(arms.values()) if isinstance(arms, dict) else []
    words = set(_words([*map(study.get, _CONFIGURED), *of_arms]))
    for text in overrides:
        words |= set(re.findall(NAME, text.partition("=")[2]))
    return frozenset(words)


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _words(part)
    elif isinstance(value, list):
        for part in value:
            yield from _words(part)


def override(document: Document, text: str) -> None:
    """Set one value as if the file contained it; the reader reports an unknown path later."""
    place = Place(source=f"--set {text}")
    path, equals, spelled = text.partition("=")
    if not path or not equals:
        rule = "--set needs PATH=VALUE, for example seeds=6"
        document.faults.append(Mistake(place=place, path="", text=rule))
        return
    keys = _keys(document.value, path)
    at = tuple(keys) or (path,)
    parsed = read_value(spelled, place, at)
    document.faults.extend(parsed.faults)
    document.places.update(parsed.places)
    if not keys:
        arms = named(path, _arms(document.value)) or "none"
        document.report(at, f"names no arm of the study file; its arms are: {arms}")
        return
    _drop_other_spellings(document.value, keys, is_whole=isinstance(parsed.value, dict))
    parent = document.value
    for depth, key in enumerate(keys[:-1], start=1):
        if key not in parent:
            document.places[at[:depth]] = place
        parent = parent.setdefault(key, {})
        if not isinstance(parent, dict):
            fault = "is one value, so nothing can be set inside it"
            document.faults.append(Mistake(place=place, path=dotted(at[:depth]), text=fault))
            return
    parent[keys[-1]] = parsed.value


def _drop_other_spellings(study: dict[str, Any], keys: list[str], *, is_whole: bool) -> None:
    """Remove other spellings of a field, and the fields of a choice that is set as a whole."""
    head = {"base": 1, "grid": 1, "zip": 1, "arms": 2, "search": 2}.get(keys[0], len(keys))
    node: Any = study
    for key in keys[:head]:
        node = node.get(key) if isinstance(node, dict) else None
    if keys[head:] and isinstance(node, dict):
        paths = paths_of(study)
        path = paths.short(".".join(keys[head:]))
        below = f"{path}." if is_whole and path in paths.choices else "."

        def drop(inside: dict[str, Any], prefix: str, kept: list[str]) -> None:
            for key in list(inside):
                inner = f"{prefix}{key}"
                if inner in paths.groups and isinstance(inside[key], dict):
                    drop(inside[key], f"{inner}.", kept[1:] if key == kept[0] else [""])
                    continue
                short = paths.short(inner)
                if (short == path and kept != [key]) or short.startswith(below):
                    del inside[key]

        drop(node, "", keys[head:])


def _keys(study: dict[str, Any], path: str) -> list[str]:
    """Split the dotted path of a `--set` option into nested keys; empty for an unknown arm."""
    section, _, rest = path.partition(".")
    match section:
        case "base" if rest:
            return ["base", *paths_of(study).keys(rest)]
        case "grid" | "zip" if rest:
            return [section, rest]
        case "search" if rest.startswith("space."):
            return ["search", "space", rest.removeprefix("space.")]
        case "search" | "budget" | "readout" | "seeds" if rest:
            return [section, *rest.split(".")]
        case "references" | "untrained" if rest:
            arm, _, metric = rest.rpartition(".")
            return [section, arm, metric] if arm and rest not in _arms(study) else [section, rest]
        case "arms" if rest:
            names = [name for name in _arms(study) if f"{rest}.".startswith(f"{name}.")]
            name = max(names, key=len, default=None)
            after = rest.removeprefix(name or "")
            return [] if name is None else ["arms", name, after[1:]] if after else ["arms", name]
        case _:
            return [path]


def _arms(study: dict[str, Any]) -> list[str]:
    arms = study.get("arms")
    return list(arms) if isinstance(arms, dict) else []
