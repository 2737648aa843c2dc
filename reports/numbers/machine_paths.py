"""Machine paths: remove the folders of this machine from paths before a text is published.

A path in the working directory becomes relative to that directory, one in the home folder begins
with `~`, and any other absolute path is cut to its last part.
"""

import os
import re
import shlex
from contextlib import suppress
from pathlib import Path

_PATH = re.compile(r"(?<![\w.:/~*-])/[^\s'\",;:{}()\[\]]*[^\s'\",;:{}()\[\].]")
"""Regular expression of an absolute path within a text; it excludes parts of URLs and of relative
paths.
"""


def path_elsewhere(path: str) -> str:
    """Return an absolute path without the folders of this machine, for a published text.

    A path in the working directory becomes relative, one in the home folder begins with `~`, and of
    any other only the last part is left. A relative path is not changed.
    """
    if not path.startswith(os.sep):
        return path
    absolute = Path(os.path.normpath(path))
    places = [(Path.home(), Path("~"))]
    with suppress(FileNotFoundError):  # the working directory was deleted
        places.insert(0, (Path.cwd(), Path()))
    for folder, start in places:
        if absolute.is_relative_to(folder) and folder != Path(folder.anchor):
            return str(start / absolute.relative_to(folder))
    return absolute.name or path


def text_elsewhere(text: str) -> str:
    """Return a text without the folders of this machine: absolute paths in it are shortened."""
    if text.startswith(os.sep):
        return path_elsewhere(text)
    return _PATH.sub(lambda found: path_elsewhere(found[0]), text)


def command_elsewhere(command: str) -> str:
    """Return a command line without the folders of this machine: absolute paths are shortened.

    The words stay quoted for the shell.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return text_elsewhere(command)
    for word in words:
        if (named := _word_elsewhere(word)) != word:
            is_plain = shlex.quote(named.lstrip("~")) == named.lstrip("~")
            command = command.replace(shlex.quote(word), named if is_plain else shlex.quote(named))
    return command


def _word_elsewhere(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value.startswith(os.sep):
        return f"{name}={path_elsewhere(value)}"
    return text_elsewhere(word)
