"""
Rows of source files, exactly, with Spark: a module for each format, and what they share.

``formats`` has the registry, and ``source_rows`` reads with it. A format's module gives frames of
these columns, a row for each row of the files:

| column     | type          | meaning                                                         |
|------------|---------------|-----------------------------------------------------------------|
| the declared ones | as declared | its values; all NULL where ``_problem`` is not NULL          |
| `_path`    | string        | the file, as Spark reports it                                   |
| `_raw`     | string        | the row as text, to be set aside                                |
| `_problem` | string        | why the row cannot be used; NULL when it can                    |

A value that does not fit its declared type never becomes NULL silently: it makes the row
unparsable, and the problem names the column.
"""
