"""What can be wrong with a function of a project, and with a call of one."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Finding, Near

# --- a file in functions/

bad_function_name = Finding(
    "bad-name",
    "{name!r} cannot be the name of a function",
    todo="Use letters, digits and underscores, a letter first, and no word of SQL: a function is "
    "named by its file.",
)

function_named_otherwise = Finding(
    "bad-function",
    "this file is {file}, and the function in it is called {name}",
    todo="Give both one name.",
)

# The name means something in Spark already.
built_in_name = Finding(
    "duplicate-name",
    "Spark has a function {name} of its own",
    todo="Take another name, for the file too: queries would mean one or the other.",
)

not_a_function = Finding(
    "bad-function",
    "{what} is expected here",
    todo="A function is written as in Spark: CREATE FUNCTION name(parameter TYPE, …) RETURNS TYPE "
    "RETURN expression",
)

unsupported_clause = Finding(
    "bad-function",
    "{what} of a function is not supported",
    todo="{instead}",
)

bad_parameter_type = Finding(
    "bad-type",
    "{type_!r} is no type that a function can have",
    {"nearest": "{nearest}"},
)

duplicate_parameter = Finding(
    "duplicate-name",
    "there is another parameter {name}",
    todo="Names are compared without regard to case.",
)

not_an_expression = Finding(
    "bad-function",
    "{name} has {what}, and a function is one expression over its parameters",
    todo="Put {what} into a model, and call the function there.",
)

unknown_parameter = Finding(
    "unknown-column",
    "{name} has no parameter {column!r}",
    {"parameters": Near("{column}")},
    "A function sees its parameters, and no column of the query that calls it.",
)

nameless_field = Finding(
    "bad-function",
    "{call} names its fields by how its arguments are written",
    todo="Write named_struct('a', a, …): then the names are the same wherever it is called.",
)

recursive_function = Finding(
    "cycle",
    "functions call each other in a circle",
    {"path": "{path}"},
    "A function is expanded where it is called, so it cannot call itself.",
)

# --- a Python file in functions/

changes_by_itself = Finding(
    "not-deterministic",
    "{what} is another value each time that it is asked for",
    todo="Take the value from an argument. Only a function may ask, which says "
    "`deterministic=False`; a session rule may not.",
)

no_function = Finding(
    "bad-function",
    "this file has no function {name} with @function",
    todo="Write `from infold import function`, and @function(parameters=[…], returns=…, "
    "deterministic=True) above `def {name}`. A file of other things begins with _.",
)

# Of the decorator.
bad_decorator = Finding(
    "bad-function",
    "{what} of @{decorator} takes {wanted}",
    todo="It is read without executing the file, so it is written out: @{decorator}({example})",
)

bad_rule = Finding(
    "bad-function",
    "the session rule {name} {what}",
    todo="A rule takes the events of a session, and yields for each of them whether it begins the "
    "next one: `for event in events: yield …`.",
)

bad_rule_parameter = Finding(
    "bad-function",
    "{parameter!r} cannot be the name of a parameter of a session rule",
    todo="Use letters, digits and underscores, a letter first. event['time'] is there already.",
)

map_in_rule = Finding(
    "bad-type",
    "a session rule cannot be given {type_}",
    todo="Events of one instant are put in order by what the rule is given, and maps have no "
    "order. Give it the value of a key.",
)

bad_python_parameters = Finding(
    "bad-function",
    "{name} is declared with {declared}, and takes {found}",
    todo="Give one type for each argument, in order: no default values, no * and no **.",
)

no_python_parameters = Finding(
    "bad-function",
    "{name} takes nothing, and a function in Python is given one argument at least",
    todo="A value that is always the same is an SQL function: CREATE FUNCTION {name}() RETURN …",
)

no_pandas = Finding(
    "missing-module",
    "{name} is called with pandas, which is not installed",
    todo='Install pandas where infold runs, or use over="arrow".',
)

# --- a call

no_session_rule = Finding(
    "bad-call",
    "{sql!r} is no call of a session rule of the project",
    {"rules": "{known}"},
    "Write rule: name(column, …) for a function below @session_rule in functions/name.py.",
)

wrong_arguments = Finding(
    "bad-call",
    "{name} takes {wanted}, and is given {found}",
    {"function": "{signature}"},
)

bad_argument = Finding(
    "bad-call",
    "{what} cannot be an argument of {name}",
    {"function": "{signature}"},
    "{todo}",
)

not_a_plain_call = Finding(
    "bad-call",
    "{name} is a function of one row, and is called with {what}",
    {"function": "{signature}"},
)

# Spark names the column by the text of the call, which is not kept.
nameless_call = Finding(
    "unnamed-column",
    "a column that is a call of {name} needs a name",
    todo="Write {name}(…) AS column_name.",
)

too_long = Finding(
    "too-deep",
    "the query has more than {limit} characters when {name} is expanded",
    todo="Its body repeats its arguments: make columns of them in a subquery, and call it over "
    "those.",
)

in_lambda = Finding(
    "bad-call",
    "{name} is Python, and cannot be called in a lambda function",
    {"function": "{signature}"},
    "Give it the array, and let it return one.",
)

lost_call = Finding(
    "bad-call",
    "{name} cannot be called here",
    {"function": "{signature}"},
    "It is a function of one row: call it in an expression.",
)


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

python_changes_by_itself = Finding(
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
