"""Reads exported tables with pandas and DuckDB and prints what they hold as JSON.

    export.py DIR...     directories of tables, each in csv, json and parquet

Exits with 77 where pandas, pyarrow or duckdb is missing. Prints one JSON object: for every
directory, table, form and reader the rows, the column names and types, and the sum of every column
of numbers.
"""

import json
import pathlib
import sys

try:
    import duckdb
    import pandas
    import pyarrow  # noqa: F401  (what pandas reads Parquet with)
except ImportError as missing:
    print(missing, file=sys.stderr)
    sys.exit(77)

READ = {"csv": pandas.read_csv, "json": pandas.read_json, "parquet": pandas.read_parquet}


def by_pandas(path):
    frame = READ[path.suffix[1:]](path)
    numbers = frame.select_dtypes("number")
    return {
        "rows": len(frame),
        "types": {name: str(kind) for name, kind in frame.dtypes.items()},
        "sums": {name: float(numbers[name].sum()) for name in numbers},
    }


def by_duckdb(path):
    table = duckdb.sql(f"SELECT * FROM '{path}'")
    kinds = dict(zip(table.columns, map(str, table.types)))
    numbers = [name for name, kind in kinds.items() if kind in ("BIGINT", "DOUBLE")]
    sums = ", ".join(f'coalesce(sum("{name}"), 0)::DOUBLE' for name in numbers) or "count(*)"
    rows = duckdb.sql(f"SELECT count(*) FROM '{path}'").fetchall()[0][0]
    values = duckdb.sql(f"SELECT {sums} FROM '{path}'").fetchall()[0]
    return {"rows": rows, "types": kinds, "sums": dict(zip(numbers, values))}


found = {}
for directory in map(pathlib.Path, sys.argv[1:]):
    for path in sorted(directory.iterdir()):
        table = found.setdefault(directory.name, {}).setdefault(path.stem, {})
        table[path.suffix[1:]] = {"pandas": by_pandas(path), "duckdb": by_duckdb(path)}
json.dump(found, sys.stdout)
