"""What can be wrong with a Python file: a declaration, its code, and what a model gives back."""

from __future__ import annotations

from infold.messages.errors import ExitCode
from infold.messages.message import Finding, Near

# --- its file, which is read and not run

bad_python = Finding("bad-python", "this is not valid Python", {"why": "{why}"})

missing_module = Finding(
    "missing-module",
    "there is no module {module!r}, in the project or installed",
    {"modules": Near("{module}")},
    "Modules of the project are found from its folder: `from lib.text import clean` reads "
    "lib/text.py. Anything else has to be installed where infold runs.",
)

unreadable_python = Finding(
    "bad-python",
    "this file of the project cannot be read",
    {"why": "{why}"},
)

no_model_function = Finding(
    "no-model-function",
    "this file has {count} functions with @model, and a model is one",
    todo="Write `from infold import model`, and @model(...) over one function. Code that several "
    "models share belongs in lib/, beside models/.",
)

not_literal = Finding(
    "not-literal",
    "{what} is not written out, and a declaration is read without running the file",
    todo="Write the value itself: a text, a number, True, False, a list or a dictionary of these.",
)

bad_model_function = Finding(
    "bad-model-function",
    "{function} {what}",
    todo="A model is a plain function: one parameter for each table that it reads, and the rows as "
    "a DataFrame that it returns.",
)

no_parameter = Finding(
    "bad-model-function",
    "{function} reads {table}, and has no parameter for it",
    {"parameters": Near("{table}")},
    "A parameter has the name of its table, without what is before a dot.",
)

no_input = Finding(
    "bad-model-function",
    "the parameter {parameter} of {function} is none of its `inputs`",
    {"inputs": "{known}"},
    "Name its table in `inputs`, or leave `inputs` out: then each parameter is named like a table.",
)

# Of a function that is given rows.
several_tables = Finding(
    "bad-model-function",
    "{function} makes rows of those of one table, and there are several",
    todo="Events follow from the rows of a source, and a row of a key from the rows of a table. "
    "Bring others in by a model before or after it.",
)

no_project_module = Finding(
    "project-import",
    "the project has no module {name}",
    {"file": "{file}"},
    "Modules that models import are files in lib/, beside models/.",
)

late_import = Finding(
    "project-import",
    "{name} is imported inside a function",
    todo="Import modules of the project at the top of the file: where the function runs, there may "
    "be no project.",
)

changes_by_itself = Finding(
    "not-deterministic",
    "{what} is another value each time that it is asked for",
    todo="Take the value from a column. Only a table may say that any result will do, in "
    '`incremental`: `"safety_overrides": {{"allow_nondeterministic": True}}`, and with it '
    '`"enabled": False` if it is built whole.',
)

outside_inputs = Finding(
    "outside-inputs",
    "{what} reads or changes something beside the inputs of a model",
    todo="Make what it reads a source or a model, and give it to the function as a parameter. Rows "
    "are returned; infold writes them.",
)

kind_not_in_python = Finding(
    "not-in-python",
    "a model in Python cannot be {kind}",
    {"can be": "{known}"},
    "Let a function make the columns that it needs, and write it in SQL over that.",
)

opaque_view = Finding(
    "python-view",
    "{model} reads {view}, a view in Python, and cannot be {kind}",
    todo="Nothing is known of how the rows of {view} follow from those that it reads. Make it a "
    "table, or this a table without `incremental`.",
)

no_timed_input = Finding(
    "no-timed-input",
    "no input of {model} has a time column, so nothing says which rows belong to a cell",
    todo="Read a model with a time column, or leave `incremental` out.",
)

# --- what it does when it runs

python_failed = Finding(
    "python-failed",
    "the function of {model} failed",
    {"raised": "{what}"},
    "Correct it; what the table has stays until then.",
    ExitCode.FAILED,
)

package_missing = Finding(
    "missing-module",
    "the function of {model} needs {module}, which is not installed",
    todo="Install it where infold runs, and where Spark's workers run.",
    exit_code=ExitCode.FAILED,
)

no_data_frame = Finding(
    "python-result",
    "the function of {model} returned {what}, and no DataFrame of Spark",
    todo="Return a DataFrame of Spark that is made from the parameters.",
)

other_columns = Finding(
    "python-columns",
    "the function of {model} returns other columns than it declares",
    {"missing": "{missing}", "not declared": "{more}", "of another type": "{types}"},
    "Return the declared columns with their types (`cast`), or declare those that it returns.",
)
