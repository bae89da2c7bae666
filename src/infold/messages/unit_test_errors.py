"""What is wrong with the files of unit tests, and with what `infold test` was asked."""

from __future__ import annotations

from infold.messages.errors import Finding, Message, Near

_FORMS = (
    "Lines of an arrival are `raw.clicks:`, `raw.clicks in FILE:`, `replace raw.clicks in FILE:` "
    "`expect MODEL:` and `expect set_aside of MODEL:`, each with a table below it or `no rows` "
    "behind it; `delete raw.clicks in FILE`; `quarantine add SESSIONS of USER`; `clock: TIME`; "
    "`no shuffle: WHY`. A line with > before it is a note."
)

bad_line = Finding("bad-test", "this line is no part of an arrival", todo=_FORMS)

table_alone = Finding(
    "bad-test", "nothing says what this table is", todo="Write a line above it. " + _FORMS
)

no_table = Finding(
    "bad-test", "a table has to follow", todo="Write one, or `no rows` behind the colon."
)

outside_arrival = Finding(
    "bad-test",
    "this heading belongs to no test",
    todo="Begin a test by a line `# NAME`, and each of its arrivals by `## Arrival`.",
)

no_separator = Finding(
    "bad-test",
    "the head of a table has to be followed by a line of dashes",
    todo="Write |---|---| under the names of the columns.",
)

ragged_row = Finding(
    "bad-test",
    "this row has {found} cells, and the table {wanted} columns",
    todo="A | inside a value is written \\|.",
)

duplicate_column = Finding("bad-test", "the column {column} is there twice")

given_late = Finding(
    "bad-test", "what is given to all tests of a file comes before them", todo="Move it up."
)

duplicate_test = Finding(
    "bad-test", "there is another test {name!r}", {"other": "{other}"}, "Name it otherwise."
)

no_arrivals = Finding(
    "bad-test", "the test {name!r} has no arrival", todo="Begin one by a line `## Arrival`."
)

expects_nothing = Finding(
    "bad-test",
    "the test {name!r} expects nothing",
    todo="Say after some arrival which rows a model has: `expect MODEL:` and a table.",
)

bad_clock = Finding(
    "bad-test",
    "{text} is no date or time",
    todo="Write 2024-03-09, or 2024-03-09 12:00; without an offset it is UTC.",
)

clock_back = Finding("bad-test", "the clock goes back, from {before}")

unknown_given = Finding(
    "bad-test",
    "there is no source or model {name}",
    {"sources and models": Near("{name}")},
)

unknown_expected = Finding("bad-test", "there is no model {name}", {"models": Near("{name}")})

view_given = Finding(
    "bad-test",
    "rows of the view {name} cannot be given: its readers do not take a table in its place",
    {"why": "{why}"},
    "Give rows of what it reads.",
)

given_and_made = Finding(
    "bad-test",
    "rows of {name} are given, so there is nothing to expect of it",
    todo="Expect rows of what reads it, or give rows of what it reads.",
)

aside_alone = Finding(
    "bad-test",
    "nothing says which model sets the rows aside",
    todo="Write `expect set_aside of MODEL:`.",
)

none_aside = Finding(
    "bad-test", "{name} sets no rows aside", todo="Models of events and of sessions do."
)

not_sessions = Finding(
    "bad-test", "{name} has no sessions that could be in quarantine", {"sessions": "{models}"}
)

unclear_owner = Finding(
    "bad-test",
    "nothing says whether {owner} is a user or an identifier",
    todo="Write `of user {owner}` or `of identifier {owner}`.",
)

other_owner = Finding("bad-test", "sessions of {name} are of {what}, not of {kind}")

no_time = Finding(
    "bad-test",
    "this row of {name} has no {column}, so it would not be stored",
    todo="A stored row is in the cell of its {column}: give it one.",
)

same_key = Finding(
    "bad-test",
    "{name} has another row with this key",
    {"key": "{key}", "other": "{other}"},
    "Rows of a model are given as it would store them: one of each key.",
)

unknown_column = Finding("bad-test", "{name} has no column {column}", {"columns": Near("{column}")})

bad_value = Finding(
    "bad-test",
    "{text} is no {type}",
    {"column": "{column}"},
    "NULL is NULL, a text may be in double quotes as in JSON, and an empty one is. Times are "
    "written 2024-03-09 12:00, arrays, maps and structs as JSON. What a file of a source has in "
    "its place is written between backticks.",
)

file_there = Finding(
    "bad-test",
    "{name} has a file {file} already",
    todo="Write `replace {name} in {file}:`, or give the file another name.",
)

no_such_file = Finding(
    "bad-test",
    "{name} has no file {file} at this point",
    {"files": "{files}"},
)

bad_cell = Finding(
    "bad-test",
    "{text} is no cell of {model}",
    todo="Write the start of one, such as 2024-03-09.",
)

no_cells = Finding("bad-test", "{model} is not divided into cells", todo="Leave `in` out.")

no_columns = Finding(
    "bad-test",
    "the columns of {name} are not declared, so its rows cannot be given",
    todo="Declare its `columns` in infold.yml.",
)

no_tests = Message(
    "no-tests",
    "the project has no tests",
    {"looked for": "{pattern}"},
    "`infold test --new MODEL --from CELL` writes one from rows of a table; `infold init` makes a "
    "project that has some.",
)

unknown_test = Message(
    "unknown-test",
    "no test is called {term}, is in a file of that name, or expects rows of such a model",
    {"tests": Near("{term}")},
)

not_a_start = Message(
    "no-rows-for-test",
    "{model} has no rows in {start}",
    todo="`infold show {model}` shows its rows. A session is named by its id, a cell by its start.",
)

from_files = Message(
    "no-rows-for-test",
    "the rows of {model} come from files, which are not stored as they were",
    todo="Write the test by hand, or make one of a model that reads {model}: {readers}.",
)

view_from_rows = Message(
    "no-rows-for-test",
    "{model} is a view: it has no rows of its own",
    todo="Make a test of a model that reads it, or write one by hand.",
)

too_many_rows = Message(
    "no-rows-for-test",
    "a test of {model} in {start} would have {rows} rows of {input}",
    {"at most": "{most}"},
    "Take a session, or a cell with fewer rows.",
)

not_masked = Message(
    "unknown-column",
    "nothing that the test shows has a column of text {column}",
    {"columns": Near("{column}")},
)
