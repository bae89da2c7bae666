"""The unit tests of each model, as far as they are known to pass without running one."""

from __future__ import annotations

from infold import api
from infold.core.project import Project
from infold.core.unit_tests import SHUFFLES
from infold.ledger import SqlLedger
from infold.messages.errors import InfoldError
from infold.page.shapes import JsonObject
from infold.testing.passed import PassedTests
from infold.testing.run_tests import read_project_tests


def tests_document(project: Project, _: SqlLedger) -> JsonObject:
    """
    For each model the tests that expect rows of it, by the files, whatever is applied.

    A test passed if it did with the usual orders and nothing that it follows from has changed
    since. Of others nothing is known: failures are not kept.
    """
    declared = api.open_project(project.root, project.target.name, declared=True)
    try:
        tests = read_project_tests(declared)
    except InfoldError as error:
        if error.slug != "no-tests":
            raise
        return {"models": {}}
    passed = PassedTests(declared, seed=0, shuffles=SHUFFLES).of(tests)
    found: dict[str, list[JsonObject]] = {}
    for test in tests:
        for model in test.models:
            found.setdefault(model, []).append(
                {
                    "test": test.name,
                    "file": f"{test.file}:{test.at.line}",
                    "passed": test.name in passed,
                }
            )
    return {"models": found}
