"""The programs that docs/clients.md lists: those that `make test-programs` drives, at the versions that it installs."""

import json
import re

from tests.programs.__main__ import HEAD, HERE, JAVASCRIPT, PAGE
from tests.programs.python_programs import PROGRAMS


def test_the_table_has_each_program_at_its_version():
    pinned: dict[str, str] = json.loads((HERE / "package.json").read_text("utf-8"))["dependencies"]
    for file in HERE.glob("*.txt"):
        pinned |= dict(re.findall(r"^([\w-]+)(?:\[.*\])?==(\S+)", file.read_text("utf-8"), re.M))
    driven = {name: pinned[program.package] for name, program in PROGRAMS.items()}
    driven |= {name: pinned[name] for name in JAVASCRIPT}
    (table,) = re.findall(rf"{re.escape(HEAD)}\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text("utf-8"))
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines()]
    assert {row[0]: row[1] for row in rows} == driven
    assert all(row[2] == "yes" for row in rows)
