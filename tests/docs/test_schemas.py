"""The JSON Schemas of infold.yml and front matter: what infold accepts, and misspelt keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from docs.schemas import FOLDER, schemas, text_of
from jsonschema import Draft7Validator
from tests.declare.shop import SHOP, read, spoilt
from tests.declare.test_mistakes import KEYS
from tests.docs import test_keys
from tests.docs.pages import DOCS, ROOT, files_of, texts_of
from tests.hostile import test_keys as hostile

from infold.cli import cli
from infold.core.yaml_tree import split_front_matter
from infold.messages.errors import InfoldError

SCHEMAS = schemas()
CHECKERS = {name: Draft7Validator(schema) for name, schema in SCHEMAS.items()}


class _Loader(yaml.SafeLoader):
    """YAML whose dates are texts, as they are in YAML 1.2."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def refused(files: Mapping[str, str]) -> list[str]:
    """What the schemas refuse in the files of a project: the file, the place, and the reason."""
    found = []
    for file, text in files.items():
        if file == "infold.yml":
            checker, of = CHECKERS["project"], text
        elif file.startswith("models/") and file.endswith(".sql"):
            try:
                checker, of = CHECKERS["model"], split_front_matter(file, text).text or "{}"
            except InfoldError as error:
                found.append(f"{file}: {error.slug}")
                continue
        else:
            continue
        try:
            value = yaml.load(of, _Loader)
        except yaml.YAMLError:
            found.append(f"{file}: no YAML")
            continue
        value = {} if value is None else value
        found += [
            f"{file} {error.json_path}: {error.message}" for error in checker.iter_errors(value)
        ]
    return found


def projects() -> Iterator[tuple[str, Mapping[str, str]]]:
    """All projects of the program, of the pages and of other tests."""
    yield "starter", texts_of(ROOT / "src" / "infold" / "starter")
    yield "demo", texts_of(ROOT / "src" / "infold" / "demo" / "project")
    yield "shop", SHOP
    yield "every key", test_keys.files(test_keys.documents())
    for page in sorted(DOCS.rglob("*.md")):
        found = {file: text for file, text in files_of(page).items() if _is_declared(file)}
        if found and found.get("infold.yml", "name:").startswith("name:"):  # and no excerpt
            yield page.relative_to(DOCS).as_posix(), found


def _is_declared(file: str) -> bool:
    return file == "infold.yml" or file.startswith("models/")


PROJECTS = dict(projects())


def test_the_published_schemas_are_those_of_the_code() -> None:
    """`python -m docs.schemas` writes them again; they are of draft 7, which editors know."""
    published = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}

    assert published == {name: text_of(schema) for name, schema in SCHEMAS.items()}
    for text in published.values():
        Draft7Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", PROJECTS)
def test_every_project_is_accepted(name: str) -> None:
    """Projects that infold accepts are accepted by the schemas."""
    assert PROJECTS[name]
    assert refused(PROJECTS[name]) == []


MISSPELT = [case for case in KEYS if any(one.startswith("unknown-key") for one in case[3])]


@pytest.mark.parametrize(("file", "old", "new", "expected"), MISSPELT)
def test_every_misspelt_key_is_refused(file: str, old: str, new: str, expected: list[str]) -> None:
    """What infold calls an unknown key, the schemas refuse by its name."""
    found = "\n".join(refused(spoilt(file, old, new)))

    for one in expected:
        if one.startswith("unknown-key"):
            assert f"'{one.split('`')[1]}'" in found


UNSEEN = """
bad-source-key delta-source-catalog extracts-in-store catalog-not-together catalog-same-tables
duplicate-name missing-key needless-key not-a-time not-shared not-with-delta optional-time
protected-dev store-without-catalog unknown-column unknown-table

bad-cron bad-date bad-duration bad-name bad-secret bad-type bad-value bad-zone no-bucket
not-of-one-event not-supported-yet password-written-out secret-written-out wrong-type

duplicate-key
"""
"""
What other keys, other models and the sources say; the values of texts that have a language of
their own, lengths of nothing and empty lists; what is gone before a schema sees the file.
"""


@pytest.mark.deep
def test_what_infold_refuses_and_the_schemas_do_not() -> None:
    """Among all mistakes these are seen by infold alone; a misspelt key is none of them."""
    unseen = {
        one.partition(" ")[0]
        for file, old, new, expected in KEYS
        if not refused(spoilt(file, old, new))
        for one in expected
    }

    assert unseen == set(UNSEEN.split())


@pytest.mark.deep
@pytest.mark.parametrize(("name", "at"), hostile.CASES)
def test_what_infold_accepts_is_accepted(name: str, at: tuple[str, ...]) -> None:
    """A schema refuses no value of a key that infold takes; one of many values for each key."""
    whole = hostile.PROJECT if name == "infold.yml" else hostile.FRONTS[name]
    for value in hostile.VALUES[hostile.CASES.index((name, at)) % 42 :: 42]:

        def put(inner: dict[str, Any], key: str, value: Any = value) -> None:
            inner[key] = value

        given = hostile.spoilt(whole, at, put)
        project, fronts = hostile.PROJECT, hostile.FRONTS
        if name == "infold.yml":
            project = given
        else:
            fronts = {**fronts, name: given}
        files = hostile.files(project, fronts)
        texts = {f: text if isinstance(text, str) else text.decode() for f, text in files.items()}
        found = refused(texts)

        assert not found or read(files)[1], found


def test_the_command_prints_a_schema() -> None:
    """`infold schema` is that of infold.yml, for an editor that takes a file."""
    for words, name in (["schema"], "project"), (["schema", "model"], "model"):
        done = CliRunner().invoke(cli, words)

        assert (done.exit_code, json.loads(done.stdout)) == (0, SCHEMAS[name])


def test_what_the_page_about_editors_shows() -> None:
    """Its commands print a schema, and its comments may be above an infold.yml."""
    page = (DOCS / "editors.md").read_text(encoding="utf-8")
    lines = re.findall(r"^ {6}(# .*)$", page, re.MULTILINE)

    assert len(lines) == 2
    assert all(line.endswith("schema=infold.schema.json") for line in lines[:1])
    files = {**SHOP, "infold.yml": "\n".join([*lines, SHOP["infold.yml"]])}
    assert (refused(files), read(files)[1]) == ([], [])
    for line in re.findall(r"^infold (.*)$", page, re.MULTILINE):
        words = line.partition(" > ")[0].split()
        assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0
