"""TypedReader: values of a type out of a document, and a list of the faults met on the way."""

import dataclasses
import difflib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, get_args, get_origin

from mixup_core.problem import DataError
from mixup_core.rules import RuleError, shown
from mixup_core.tree.building import parsed
from mixup_core.tree.parts import members
from mixup_core.tree.spelling_errors import SpellingError
from sweeps.reading.strict_yaml import REFUSED, At, Document, Refused, holds_refused
from sweeps.reading.tree_paths import Setting, Settings, TreePaths, blamed

MAX_HINTS = 20
"""Problems of a file after which no nearest name is looked for: it would take long for 20,000."""


class TypedReader:
    """Reads what stands at a path of a document. What is wrong is reported and left out."""

    def __init__(self, document: Document) -> None:
        """Make a reader of a document, whose faults it adds to."""
        self.document = document
        self.faults = document.faults

    def report(self, at: At, text: str, word: str = "", known: Iterable[str] = ()) -> None:
        """Add a fault at a path of the document; of a misspelt word, with the nearest known one."""
        self.document.report(at, f"{text}{self._hint(word, known)}")

    def _hint(self, word: str, known: Iterable[str]) -> str:
        return did_you_mean(word, known) if word and len(self.faults) < MAX_HINTS else ""

    def mapping(self, value: Any, at: At) -> Mapping[str, Any]:
        """Return a value that must be a mapping; an empty one if it is not, or was refused."""
        if not isinstance(value, dict | Refused):
            self.report(at, f"expected a mapping, got {shown(value)}")
        return value if isinstance(value, dict) else {}

    def filled(self, value: Any, at: At, what: str) -> Sequence[Any]:
        """Return a value that must be a list of at least one thing; none if it was refused."""
        if value is not REFUSED and not (isinstance(value, list) and value):
            self.report(at, f"expected a list of at least one {what}, got {shown(value)}")
        return value if isinstance(value, list) else ()

    def value(self, hint: Any, value: Any, at: At) -> Any:
        """Return a value of a type, lists and sections read part by part; else `REFUSED`.

        Args:
            hint: Type as a dataclass of a tree has it; `object` for the value as it was written.
            value: What was written.
            at: Where.
        """
        kind, *others = [member for member in members(hint) if member is not type(None)]
        if hint is object:
            return value
        if value is not None and not others and _is_section(kind):
            before = len(self.faults)
            section, gone = self.section(TreePaths(kind), value, at)
            return REFUSED if gone or len(self.faults) > before else section
        items = [get_args(member)[0] for member in members(hint) if get_origin(member) is tuple]
        parts = value if items and isinstance(value, list) else ()
        try:
            if not holds_refused(value):
                return parsed(hint, value)
        except SpellingError as error:
            if not parts:
                is_scalar = isinstance(error.value, bool | int | float)
                quote = "; quote it" if is_scalar and "expected text" in str(error) else ""
                word = error.value if isinstance(error.value, str) else ""
                self.report(at, f"{error}{quote}", word, error.names)
        except RuleError as error:
            if not parts:
                self.report(at, str(error))
        for number, part in enumerate(parts):
            self.value(items[0], part, (*at, number))
        return REFUSED

    def section(self, paths: TreePaths, value: Any, at: At) -> tuple[Any, frozenset[str]]:
        """Return the tree that a mapping holds as `TreePaths.join` does, faults reported."""
        return self.joined(paths, [self.nested(paths, value, at)], at)

    def joined(
        self, paths: TreePaths, levels: Sequence[Settings], at: At
    ) -> tuple[Any, frozenset[str]]:
        """Return `TreePaths.join` of levels without its errors, which are reported.

        Args:
            paths: Of the type of the tree.
            levels: As for `TreePaths.merged`.
            at: Where faults are that no given value causes.
        """
        given = paths.merged(levels)
        for name in paths.required:
            if name not in given:
                self.report(at, f"missing key {name!r}")
        tree, gone, errors = paths.join(given)
        for error in errors:
            self.blame(error, levels, at)
        return tree, gone

    def blame(self, error: RuleError | DataError, levels: Sequence[Settings], at: At) -> None:
        """Report an error at the most special of the values that it concerns; see `joined`."""
        setting = blamed(error, levels)
        missing = (*at, *(error.fields[0].split(".") if error.fields else ()))
        self.report(missing if setting is None else setting.at, str(error))

    def nested(self, paths: TreePaths, value: Any, at: At, prefix: str = "") -> dict[str, Setting]:
        """Return the settings of a mapping whose groups are mappings inside it.

        Args:
            paths: Of the type of the tree.
            value: The mapping.
            at: Where it stands.
            prefix: Path of the group inside the tree with a dot after it; empty for the tree.
        """
        if not isinstance(value, dict):
            self.mapping(value, at)
            refused = Setting(value=REFUSED, at=at)
            return {path: refused for path in paths.leaves if path.startswith(prefix)}
        settings: dict[str, Setting] = {}
        for key, part in value.items():
            path, head = f"{prefix}{key}", f"{prefix}{key.partition('.')[0]}"
            if "." not in key and path in paths.groups:
                settings |= self.nested(paths, part, (*at, key), f"{path}.")
            elif path in paths.leaves and ("." not in key or head in paths.choices):
                settings[path] = self.setting(paths, path, part, (*at, key))
            else:
                self._report_unknown(paths, key, prefix, (*at, key))
        return settings

    def dotted(self, paths: TreePaths, value: Any, at: At) -> dict[str, Setting]:
        """Return the settings of a mapping of dotted paths; see `nested` for what is none."""
        if not isinstance(value, dict):
            return self.nested(paths, value, at)
        settings = {}
        for path, part in self.mapping(value, at).items():
            if self.is_path(paths, path, (*at, path)):
                settings[path] = self.setting(paths, path, part, (*at, path))
        return settings

    def setting(self, paths: TreePaths, path: str, value: Any, at: At) -> Setting:
        """Return what is given under a path of a tree."""
        part = paths.leaves[path].part
        written = value if part.options and isinstance(value, dict) else {}
        read = value
        if not (isinstance(value, str) and value in part.options):
            read = self.value(part.hint, value, at)
        for tag, content in written.items():
            for key in content if isinstance(content, dict) else ():
                if (inside := f"{path}.{key}") in paths.reserved:
                    self.report((*at, tag, key), paths.reserved[inside])
        return Setting(value=read, at=at)

    def is_path(self, paths: TreePaths, path: str, at: At) -> bool:
        """Return whether a dotted path names one value; one that does not is reported."""
        if path in paths.leaves:
            return True
        if path in paths.reserved:
            self.report(at, paths.reserved[path])
        elif path in paths.groups:
            inside = ", ".join(known for known in paths.leaves if known.startswith(f"{path}."))
            self.report(at, f"names a group of values; give one of {inside}")
        else:
            self.report(at, "unknown path", path, paths.leaves)
        return False

    def _report_unknown(self, paths: TreePaths, key: str, prefix: str, at: At) -> None:
        path = f"{prefix}{key}"
        if path in paths.reserved:
            self.report(at, f"{key!r} {paths.reserved[path]}")
        elif path in paths.leaves or path in paths.groups:
            nested = path.replace(".", ": {", 1)
            self.report(at, f"unknown key {key!r}; this is nested, write {nested}: ...}}")
        else:
            inside = [name.removeprefix(prefix) for name in paths.leaves if name.startswith(prefix)]
            siblings = dict.fromkeys(name.partition(".")[0] for name in inside)
            hint = self._hint(key, siblings) or self._hint(path, paths.leaves)
            self.report(at, f"unknown key {key!r}{hint}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)` for the nearest known word, or nothing if none is near.

    A long path may be given by its last part alone: `lr` finds `optimizer.lr`. Of very many words
    the first 1,000 are looked at.
    """
    known = list(islice(known, 1000))
    by_tail = {path.rpartition(".")[2]: path for path in reversed(known)}
    nearest = difflib.get_close_matches(word, known, n=1) or [
        by_tail[tail] for tail in difflib.get_close_matches(word.rpartition(".")[2], by_tail, n=1)
    ]
    return f" (did you mean {nearest[0]}?)" if nearest else ""


def _is_section(kind: Any) -> bool:
    """Return whether a type is a dataclass that a study file writes as a mapping of its fields."""
    names = (getattr(kind, "tag", None), getattr(kind, "name", None))
    return dataclasses.is_dataclass(kind) and not any(isinstance(name, str) for name in names)
