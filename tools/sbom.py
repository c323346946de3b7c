"""Writes the bill of materials of an install, as CycloneDX JSON: `make sbom extras=web,postgres`.

Rota is installed into an empty virtual environment. What is then installed there, `importlib.metadata` says.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec import json as msgspec_json
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
NOT_OURS = {"pip", "setuptools"}  # what makes an environment
NAMESPACE = uuid.UUID("6f0b0a5e-0c4c-4b53-9f0f-3d5b8a2f5c11")

LIST = """
import importlib.metadata, json
print(json.dumps([
    {
        "name": one.metadata["Name"],
        "version": one.version,
        "summary": one.metadata["Summary"] or "",
        "license": one.metadata.get("License-Expression") or "",
        "license_text": one.metadata.get("License") or "",
        "classifiers": one.metadata.get_all("Classifier") or [],
        "urls": one.metadata.get_all("Project-URL") or [],
        "requires": one.requires or [],
    }
    for one in importlib.metadata.distributions()
]))
"""


class Package(Struct, kw_only=True):
    """What an installed package says of itself."""

    name: str
    version: str
    summary: str = ""
    license: str = ""  # an SPDX expression
    license_text: str = ""  # what older packages have instead: a name, or the whole text
    classifiers: list[str] = []
    urls: list[str] = []
    requires: list[str] = []

    @property
    def key(self) -> str:
        return re.sub(r"[-_.]+", "-", self.name).lower()

    @property
    def ref(self) -> str:
        return f"pkg:pypi/{self.key}@{self.version}"


def main(arguments: list[str]) -> int:
    """Write the bill of an install with these extras to stdout."""
    extras = f"[{arguments[0]}]" if arguments else ""
    with tempfile.TemporaryDirectory() as place:
        python = str(Path(place) / "bin" / "python")
        for command in (
            [sys.executable, "-m", "venv", place],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{ROOT}{extras}"],
        ):
            subprocess.run(command, check=True)  # noqa: S603 - built above
        found = installed_in(python)
    print(json.dumps(bill_of(found, extras=set(arguments[0].split(",")) if arguments else set()), indent=2))  # noqa: T201
    return 0


def installed_in(python: str) -> list[Package]:
    """What this interpreter's environment has, without the tools that installed it."""
    listed = subprocess.run([python, "-c", LIST], check=True, capture_output=True).stdout  # noqa: S603 - our own code
    found = msgspec_json.decode(listed, type=list[Package])
    return sorted((one for one in found if one.key not in NOT_OURS), key=lambda one: one.key)


def bill_of(packages: list[Package], extras: set[str] | None = None) -> dict[str, Any]:
    """The bill, with Rota as the thing that is described and all others as its parts."""
    [rota] = [one for one in packages if one.key == "rota"]
    parts = [one for one in packages if one is not rota]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, ' '.join(one.ref for one in packages))}",
        "version": 1,
        "metadata": {"component": _component(rota, kind="application")},
        "components": [_component(one) for one in parts],
        "dependencies": [_dependency(one, packages, extras or set()) for one in packages],
    }


def _component(one: Package, kind: str = "library") -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": kind,
        "bom-ref": one.ref,
        "name": one.name,
        "version": one.version,
        "purl": one.ref,
    }
    if one.summary:
        component["description"] = one.summary
    if licenses := _licenses(one):
        component["licenses"] = licenses
    if references := [_reference(line) for line in one.urls]:
        component["externalReferences"] = references
    return component


def _licenses(one: Package) -> list[dict[str, Any]]:
    """The expression; or, of older packages, the names that they give."""
    if one.license:
        return [{"expression": one.license}]
    names = [line.rpartition(" :: ")[2] for line in one.classifiers if line.startswith("License :: ")]
    if not names and one.license_text and "\n" not in one.license_text:
        names = [one.license_text]
    return [{"license": {"name": name}} for name in names]


def _reference(line: str) -> dict[str, str]:
    """`Changelog, https://…` as CycloneDX has it."""
    label, _, url = line.partition(", ")
    kinds = {
        "homepage": "website",
        "documentation": "documentation",
        "docs": "documentation",
        "source": "vcs",
        "source code": "vcs",
        "repository": "vcs",
        "issues": "issue-tracker",
        "issue tracker": "issue-tracker",
        "changelog": "release-notes",
        "changes": "release-notes",
        "security": "security-contact",
    }
    return {"type": kinds.get(label.lower(), "other"), "url": url, "comment": label}


def _dependency(one: Package, packages: list[Package], extras: set[str]) -> dict[str, Any]:
    """What it needs here, of what is installed."""
    needed = {_key_of(text) for text in one.requires if _applies(text, extras if one.key == "rota" else set())}
    return {"ref": one.ref, "dependsOn": [other.ref for other in packages if other.key in needed]}


def _applies(text: str, extras: set[str]) -> bool:
    marker = Requirement(text).marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""}))


def _key_of(text: str) -> str:
    return re.sub(r"[-_.]+", "-", Requirement(text).name).lower()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
