"""`${NAME}` in tenant files, and where a secret may come from.

In this order: the variable NAME; the file that the variable NAME_FILE names; `CONFIG_DIR/secrets/NAME`;
`/run/secrets/NAME` (or `name`), where docker and many set-ups of Kubernetes put theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from config.settings import MOUNTED, Settings

_PLACE = re.compile(r"\$(\$\{)|\$\{([^}\n]*)(\}?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
_MAX_BYTES = 64 * 1024


class Missing(Exception):
    """A `${…}` that can't be filled in: what is wrong and how to mend it. `name`: the variable that is not set."""

    def __init__(self, what: str, remedy: str, name: str | None = None) -> None:
        super().__init__(what)
        self.what, self.remedy, self.name = what, remedy, name


@dataclass(frozen=True, slots=True)
class Found:
    """Where a secret comes from: `the environment`, or a file."""

    name: str
    where: str


class Secrets:
    """Looks names up for one tenant. Remembers in `files` which files the answers depended on, missing ones too, and in
    `found` and `missing` what became of each name."""

    def __init__(self, settings: Settings, tenant_id: str = "") -> None:
        self._variables = settings.variables
        self._dir = settings.config_dir / "secrets"
        self._tenant = variable_of(tenant_id)
        self.files: set[Path] = set()
        self.found: dict[str, Found] = {}
        self.missing: set[str] = set()

    def fill(self, text: str) -> str:
        """The text with each `${NAME}` filled in; `$${` stands for `${`, and `*` in a name for the tenant's id in
        capitals. What is filled in is not looked at again.

        Raises Missing; it names the variable, never a value.
        """
        return _PLACE.sub(self._one, text) if "${" in text else text

    def _one(self, found: re.Match[str]) -> str:
        if found[1]:
            return "${"
        name = found[2].replace("*", self._tenant)
        if not found[3] or not _NAME.match(name):
            raise Missing("holds `${` with no variable's name after it", "write ${NAME}, or $${ for the characters ${")
        value = self._variables.get(name)
        if value is not None:
            self.found[name] = Found(name, "the environment")
            return value
        return self._from_file(name)

    def _from_file(self, name: str) -> str:
        named = self._variables.get(f"{name}_FILE")
        usual = self._dir / name
        places = [Path(named)] if named else [usual, MOUNTED / name, MOUNTED / name.lower()]
        self.files.update(places)
        for path in places:
            try:
                with path.open("rb") as opened:
                    value = opened.read(_MAX_BYTES + 1).decode("utf-8-sig").rstrip("\r\n")
            except (FileNotFoundError, NotADirectoryError):
                continue
            except UnicodeDecodeError:
                raise Missing(f"needs {name}, whose file {path} is not UTF-8 text", "save that file as UTF-8") from None
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or "no path"
                raise Missing(
                    f"needs {name}, whose file {path} can't be read ({why})",
                    "let the user that runs the bot read that file",
                ) from None
            if not value or len(value) > _MAX_BYTES:
                raise Missing(
                    f"needs {name}, whose file {path} is empty or too big", "write the value alone into that file"
                )
            self.found[name] = Found(name, str(path))
            return value
        self.missing.add(name)
        if named:
            what, remedy = f"needs {name}, but {name}_FILE names a file that does not exist", "correct that path"
            raise Missing(what, remedy, name)
        what, remedy = f"needs the variable {name}, which is not set", f"set {name} in the environment"
        raise Missing(what, f"{remedy}, or write it to {usual}", name)


def variable_of(tenant_id: str) -> str:
    """A tenant's id as it stands in the names of its variables: `shop-01` is SHOP_01; what begins with a digit gets
    SHOP_ before it."""
    return ("" if tenant_id[:1].isalpha() else "SHOP_") + tenant_id.upper().replace("-", "_")
