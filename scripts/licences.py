"""What the requirements pin, with licences out of the installed packages' own metadata. Asks nobody, takes a second.

python scripts/licences.py > docs/licences.md      the list for people
python scripts/licences.py --sbom > sbom.json      a bill of materials, CycloneDX 1.6
python scripts/licences.py --check                 whether docs/licences.md is what it would be now
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINS = ("requirements.txt", "requirements-extras.txt")  # what runs; what only tests is no part of it
LIST = ROOT / "docs" / "licences.md"
LONGEST = 60  # characters: some put the whole text there
NOT_HERE = "not installed here"  # another platform's, or an extra that was left out
_PIN = re.compile(
    r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)[^\n]*\n((?:[ ]+--hash=sha256:[0-9a-f]{64}[^\n]*\n)*)", re.M
)


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    hashes: tuple[str, ...]  # SHA-256 of each of its files that may be installed
    licence: str


def pinned() -> list[Package]:
    found: dict[str, Package] = {}
    for file in PINS:
        for name, version, hashes in _PIN.findall((ROOT / file).read_text("utf-8")):
            try:
                licence = licence_of(distribution(name))
            except PackageNotFoundError:
                licence = NOT_HERE
            found[name] = Package(name, version, tuple(re.findall(r"sha256:([0-9a-f]{64})", hashes)), licence)
    return sorted(found.values(), key=lambda one: one.name.lower())


def licence_of(found: Distribution) -> str:
    told = found.metadata
    named = told.get("License-Expression") or told.get("License") or ""
    if named and "\n" not in named.strip() and len(named) <= LONGEST and named != "UNKNOWN":
        return named.strip()
    by_class = [one.rpartition(" :: ")[2] for one in told.get_all("Classifier") or () if one.startswith("License ::")]
    return ", ".join(by_class) or "see its files"


def listed(packages: list[Package]) -> str:
    rows = [f"| {one.name} | {one.version} | {one.licence} |" for one in packages]
    return "\n".join(
        ["# Licences of the packages", "", "| package | version | licence |", "| --- | --- | --- |", *rows, ""]
    )


def bill(packages: list[Package]) -> dict[str, Any]:
    own = {"type": "application", "bom-ref": "chat-chat", "name": "chat-chat", "licenses": [{"license": {"id": "MIT"}}]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own},
        "components": [_component(one) for one in packages],
        "dependencies": [{"ref": "chat-chat", "dependsOn": [_purl(one) for one in packages]}],
    }


def _purl(package: Package) -> str:
    return f"pkg:pypi/{package.name.lower().replace('_', '-')}@{package.version}"


def _component(package: Package) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
    }
    if package.licence not in (NOT_HERE, "see its files"):
        component["licenses"] = [{"license": {"name": package.licence}}]
    files = [{"alg": "SHA-256", "content": one} for one in package.hashes]
    if files:  # one hash is the component's; several are those of its files, of which one is installed
        url = f"https://pypi.org/project/{package.name}/{package.version}/"
        component["externalReferences"] = [{"type": "distribution", "url": url, "hashes": files}]
    return component


def wrong(packages: list[Package], there: str) -> list[str]:
    """What the list has otherwise; a licence is compared where its package is installed."""
    rows = {
        tuple(one.strip() for one in line.split("|")[1:3]): line.split("|")[3].strip()
        for line in there.splitlines()[4:]
    }
    out = []
    for one in packages:
        known = rows.pop((one.name, one.version), None)
        if known is None:
            out.append(f"{one.name} {one.version} is not listed")
        elif one.licence != NOT_HERE and known != one.licence:
            out.append(f"{one.name}: listed as {known}, its metadata says {one.licence}")
    return [*out, *(f"{name} {version} is listed and not pinned" for name, version in rows)]


def main(arguments: list[str]) -> int:
    packages = pinned()
    if arguments == ["--check"]:
        found = wrong(packages, LIST.read_text("utf-8"))
        if found:
            sys.stdout.write("\n".join([*found, "python scripts/licences.py > docs/licences.md writes it anew"]) + "\n")
        return 1 if found else 0
    if arguments == ["--sbom"]:
        sys.stdout.write(json.dumps(bill(packages), indent=2) + "\n")
        return 0
    sys.stdout.write(listed(packages))
    return 2 if arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
