"""`${NAME}` in tenant files: from the environment, else from the file `CONFIG_DIR/secrets/NAME`."""

from __future__ import annotations

import re
from pathlib import Path

from config.settings import Settings

_PLACE = re.compile(r"\$(\$\{)|\$\{([^}\n]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_MAX_BYTES = 64 * 1024


class Missing(Exception):
    """A `${…}` that can't be filled in: what is wrong and how to mend it."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what, self.remedy = what, remedy


class Secrets:
    """Looks names up, and remembers in `files` which files the answers depended on, missing ones too."""

    def __init__(self, settings: Settings) -> None:
        self._variables = settings.variables
        self._dir = settings.config_dir / "secrets"
        self.files: set[Path] = set()

    def fill(self, text: str) -> str:
        """The text with each `${NAME}` filled in; `$${` stands for `${`. What is filled in is not looked at again.

        Raises Missing; it names the variable, never a value.
        """
        return _PLACE.sub(self._one, text) if "${" in text else text

    def _one(self, found: re.Match[str]) -> str:
        if found[1]:
            return "${"
        name = found[2]
        if not found[3] or not _NAME.match(name):
            raise Missing("holds `${` with no variable's name after it", "write ${NAME}, or $${ for the characters ${")
        value = self._variables.get(name)
        return self._from_file(name) if value is None else value

    def _from_file(self, name: str) -> str:
        path = self._dir / name
        self.files.add(path)
        try:
            with path.open("rb") as opened:
                value = opened.read(_MAX_BYTES + 1).decode("utf-8-sig").rstrip("\r\n")
        except FileNotFoundError:
            raise Missing(
                f"needs the variable {name}, which is not set", f"set {name} in the environment, or write it to {path}"
            ) from None
        except UnicodeDecodeError:
            raise Missing(f"needs {name}, whose file {path} is not UTF-8 text", "save that file as UTF-8") from None
        except OSError as error:
            raise Missing(
                f"needs {name}, whose file {path} can't be read ({error.strerror})",
                "let the user that runs the bot read that file",
            ) from None
        if not value or len(value) > _MAX_BYTES:
            raise Missing(
                f"needs {name}, whose file {path} is empty or too big", "write the value alone into that file"
            )
        return value
