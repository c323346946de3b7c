"""What is published: files of the wheel and the sdist, what an install brings, the bill of materials, release notes."""

from __future__ import annotations

import email
import importlib.metadata
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from tools.packages import (
    MOST_PACKAGES,
    ROOT,
    Failed,
    check_addresses,
    check_sdist,
    check_wheel,
    main,
    project,
    version,
)
from tools.release_notes import NoNotes, notes_of
from tools.sbom import Package, bill_of, installed_in

from amounts import IS_SOAK

BUILD = "import sys; from hatchling import build as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"
KINDS = (".css", ".html", ".js", ".lua", ".py", ".sql", ".toml", ".typed")
CHANGELOG = """# Changelog

## Unreleased

- Not yet.

## 0.2.0 (2026-12-01)

- Second.

## 0.1.0 (2026-11-18)

A word.

### Jobs

- First.

## 0.0.9
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """Both packages, without an environment of their own to build them in."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD, folder], cwd=ROOT, check=True)
    return folder


@pytest.fixture
def wheel(built):
    return next(built.glob("*.whl"))


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel):
    check_wheel(wheel)
    kinds = Counter(Path(name).suffix for name in names_in(wheel))
    assert all(kinds[kind] for kind in KINDS), kinds
    assert "rota/py.typed" in names_in(wheel)
    tops = {name.partition("/")[0] for name in names_in(wheel)}
    assert tops == {"rota", f"rota-{version()}.dist-info"}


def test_a_wheel_that_lacks_a_file_or_has_a_stranger_is_refused(wheel, tmp_path):
    def copy(leave_out: str = "", add: str = "") -> Path:
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(tmp_path / wheel.name, "w") as new:
            for name in names_in(wheel):
                if name != leave_out:
                    new.writestr(name, old.read(name))
            if add:
                new.writestr(add, "")
        return tmp_path / wheel.name

    with pytest.raises(Failed, match=r"lacks rota/py\.typed"):
        check_wheel(copy(leave_out="rota/py.typed"))
    with pytest.raises(Failed, match=r"no part of the package: tests/test_x\.py"):
        check_wheel(copy(add="tests/test_x.py"))


def test_the_sdist_has_what_its_tests_need(built):
    check_sdist(next(built.glob("*.tar.gz")))


def test_the_metadata_names_addresses_the_license_and_the_pythons(wheel):
    with zipfile.ZipFile(wheel) as archive:
        about = email.message_from_bytes(archive.read(f"rota-{version()}.dist-info/METADATA"))
    urls = dict(line.split(", ") for line in about.get_all("Project-URL"))
    assert set(urls) == {"Homepage", "Documentation", "Source", "Issues", "Changelog", "Security"}
    assert about["License-Expression"] == "MIT"
    assert about["Requires-Python"] == ">=3.11"
    assert "Programming Language :: Python :: 3.13" in about.get_all("Classifier")


def test_a_release_refuses_placeholder_addresses():
    check_addresses({"Source": "https://git.company.com/rota", "SECURITY.md": "Write to security@company.com."})
    with pytest.raises(Failed, match=r"in Source: write the project's own into \[project\.urls\]"):
        check_addresses({"Source": "https://rota.example/source", "SECURITY.md": "Write to security@company.com."})


def needed_by(name: str, known: dict[str, Package]) -> set[str]:
    """The packages that an install of this one without extras brings, itself included."""
    bill = {one["ref"]: one["dependsOn"] for one in bill_of(list(known.values()))["dependencies"]}
    reached, new = set(), {known[name].ref}
    while new:
        reached |= new
        new = {ref for one in new for ref in bill[one]} - reached
    return reached


def test_a_core_install_has_at_most_nine_packages():
    known = {one.key: one for one in installed_in(sys.executable)}
    assert len(needed_by("rota", known)) <= MOST_PACKAGES


def test_the_bill_of_materials_names_each_package_once_with_version_and_needs():
    found = [
        Package(
            name="rota",
            version="1.0",
            license="MIT",
            requires=["Click_Like>=1", "web; extra == 'web'", "old; python_version < '3'"],
            urls=["Security, https://rota.example/security"],
        ),
        Package(name="click-like", version="8", classifiers=["License :: OSI Approved :: BSD License"]),
        Package(name="web", version="2", license_text="Apache-2.0"),
        Package(name="old", version="3", license_text="Many\nlines"),
    ]
    bill = bill_of(found)
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/rota@1.0"
    assert bill["metadata"]["component"]["externalReferences"][0]["type"] == "security-contact"
    assert [one["purl"] for one in bill["components"]] == ["pkg:pypi/click-like@8", "pkg:pypi/web@2", "pkg:pypi/old@3"]
    assert bill["components"][0]["licenses"] == [{"license": {"name": "BSD License"}}]
    assert "licenses" not in bill["components"][2]
    needs = {one["ref"]: one["dependsOn"] for one in bill["dependencies"]}
    assert needs["pkg:pypi/rota@1.0"] == ["pkg:pypi/click-like@8"]
    with_web = {one["ref"]: one["dependsOn"] for one in bill_of(found, extras={"web"})["dependencies"]}
    assert with_web["pkg:pypi/rota@1.0"] == ["pkg:pypi/click-like@8", "pkg:pypi/web@2"]
    assert bill_of(found) == bill


def test_release_notes_are_the_section_of_their_version():
    notes = notes_of("0.1.0", CHANGELOG)
    assert notes.startswith(
        "# Rota 0.1.0\n\n2026-11-18\n\n```console\n$ pip install rota==0.1.0\n```\n\nA word.\n\n## Jobs\n"
    )
    assert notes.endswith("- First.\n")
    with pytest.raises(NoNotes, match=r"no section for 3\.0; it has Unreleased, 0\.2\.0, 0\.1\.0"):
        notes_of("3.0", CHANGELOG)
    with pytest.raises(NoNotes, match=r"0\.0\.9 has no date"):
        notes_of("0.0.9", CHANGELOG)


def test_this_version_has_release_notes_and_the_changelog_begins_with_what_follows_it():
    assert len(notes_of(version())) > 1_000
    first = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2]
    assert first.startswith("Unreleased\n")


def test_the_version_is_the_one_that_is_installed():
    assert project()["version"] == importlib.metadata.version("rota")


@pytest.mark.skipif(not IS_SOAK, reason="it makes environments on every Python; `make soak` and `make packages` run it")
def test_the_packages_install_and_run_on_every_python(tmp_path):
    assert main(["--folder", str(tmp_path)]) == 0
    assert {path.suffix for path in tmp_path.iterdir()} >= {".whl", ".gz", ".json"}
