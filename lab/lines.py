#!/usr/bin/env python3
"""Counts lines of production code by crate: no tests, no comments, no blank lines.

Usage: lab/lines.py [COMMIT]    of the working tree, or of a commit
"""

import os
import re
import subprocess
import sys
from collections import Counter

TESTS = re.compile(r"(^|/)(tests|benches|examples|fuzz)/|(^|/)tests\.rs$")


def git(*words):
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def production(text):
    """The lines that are neither blank, nor a comment, nor in a module of tests."""
    count, inside = 0, False
    waiting = False
    for line in text.splitlines():
        bare = line.strip()
        if inside:
            # Modules of tests end with a brace in the first column.
            inside = line != "}"
            continue
        if bare == "#[cfg(test)]":
            waiting = True
            continue
        if waiting:
            waiting = False
            if bare.startswith(("mod ", "pub(crate) mod ")) and bare.endswith("{"):
                inside = True
                continue
            if bare.startswith("mod ") and bare.endswith(";"):
                continue
        if bare and not bare.startswith("//"):
            count += 1
    return count


def main():
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    names = git("ls-tree", "-r", "--name-only", commit) if commit else git("ls-files")
    crates = Counter()
    for name in names.splitlines():
        if not name.endswith(".rs") or TESTS.search(name):
            continue
        if commit:
            text = git("show", f"{commit}:{name}")
        elif os.path.exists(name):
            with open(name, encoding="utf-8") as file:
                text = file.read()
        else:
            continue
        crates["/".join(name.split("/")[:2])] += production(text)
    for crate, lines in sorted(crates.items()):
        print(f"{lines:7} {crate}")
    print(f"{sum(crates.values()):7} in all")


main()
