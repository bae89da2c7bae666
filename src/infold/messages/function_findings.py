"""What can be wrong with a function of a project, and with a call of one."""

from __future__ import annotations

from infold.messages.message import Finding, Near

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
