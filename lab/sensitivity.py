#!/usr/bin/env python3
"""What a constant of the protocol is worth: halves and doubles each over the bench of links that
nobody chose, and prints by how much that changes what users feel.

Usage: lab/sensitivity.py [OPTIONS] [PART]...

PART is a part of `FILE::NAME`, such as law/ or path/pacer.rs::BURST; without one, all constants.

Options:
  --dir DIR      where the copy of the workspace and the results are (target/sensitivity)
  --seeds N,...  the bench's draws (1): with one, live p99 scatters by 3 to 5 % by itself
  --traces DIR   recorded links (../shared/traces); without them, drawn and misbehaving ones
  --list         print the constants that can be scaled, and stop

A constant of crates/marline-proto is scaled in a copy of the workspace in which it is read once,
at the start of the program; one build serves all. A run is `marline repro field --quick
--auto-only`: some 15 s of one core, so all constants take two to three hours. Values between one
half and one are scaled in their distance to one, and so are those between one and two: they are
shares and gains. Results are kept in DIR/seed-N.csv: stopped and started again, or with more seeds,
the command redoes nothing. Remove these files after a change of the code.

In the table each column is the geometric mean over all cells of the bench of what the scaled
program measures over what the plain one does: of goodput more is better, of all else less. `*`: it
is farther from 1 than two standard errors, which of 500 numbers some are by chance. `=`: not one
digit changed. What the bench never reads, such as constants of other schedulers, is listed at the
end.
"""

import argparse
import csv
import json
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CRATE = Path("crates/marline-proto/src")
# Numbers of the wire are agreed with the peer.
LEFT_OUT = ("wire/",)
KINDS = "f64|Duration|u32|u64|usize|i64"
DEFINED = re.compile(
    rf"^(pub\([a-z: ]+\) )?const ([A-Z][A-Z0-9_]*): ({KINDS}) =\s*([^;]*);", re.MULTILINE
)
ANY_CONST = re.compile(r"^(?:pub(?:\([a-z: ]+\))? )?const ([A-Z][A-Z0-9_]*):", re.MULTILINE)
# What no name is replaced in, or a name with what stands before it.
TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|"(?:\\.|[^"\\])*"|(?:const|static)[ ][A-Z]\w*)"""
    r"""|(?P<use>^[ ]*(?:pub(?:\([^)]*\))?[ ])?use[ ][^;]*;)"""
    r"""|(?P<path>(?:\w+::)*)(?<!\w)(?P<name>[A-Z][A-Z0-9_]*)(?![\w(!])""",
    re.MULTILINE,
)
MEASURES = ["live p99", "page load", "goodput", "silence", "given up", "bytes on wire"]
FACTORS = {"half": 0.5, "double": 2.0}

TUNED = """//! Constants that are scaled at the start of the program.

use core::time::Duration;
use std::io::Write as _;

pub(crate) trait Scaled: Copy {
    fn scaled(self, factor: f64) -> Self;
}

impl Scaled for f64 {
    fn scaled(self, factor: f64) -> Self {
        if (0.5..1.0).contains(&self) {
            1.0 - (1.0 - self) / factor
        } else if 1.0 < self && self < 2.0 {
            1.0 + (self - 1.0) * factor
        } else {
            self * factor
        }
    }
}

impl Scaled for Duration {
    fn scaled(self, factor: f64) -> Self {
        self.mul_f64(factor)
    }
}

macro_rules! whole {
    ($($kind:ty)*) => {$(
        impl Scaled for $kind {
            fn scaled(self, factor: f64) -> Self {
                let scaled = self as f64 * factor;
                if self > 0 { scaled.max(1.0) as $kind } else { scaled as $kind }
            }
        }
    )*};
}
whole!(u32 u64 usize i64);

pub(crate) fn value<T: Scaled>(name: &str, plain: T) -> T {
    if let Ok(path) = std::env::var("MARLINE_CONSTANTS_READ") {
        let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{name}"));
    }
    let scale = std::env::var("MARLINE_SCALE").unwrap_or_default();
    match scale.split_once('=') {
        Some((scaled, factor)) if scaled == name => plain.scaled(factor.parse().unwrap()),
        _ => plain,
    }
}
"""


def write(path, content):
    """What is as it was keeps its time, so that cargo builds it once."""
    if not path.exists() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy(folder, without):
    """The files of the working tree, in a folder of their own."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True).stdout
    for name in files.decode().split("\0"):
        if name and name not in without and (ROOT / name).is_file():
            write(folder / name, (ROOT / name).read_bytes())


def sources():
    """The code of the crate without its tests, by path below src."""
    found = {}
    for path in sorted((ROOT / CRATE).rglob("*.rs")):
        name = str(path.relative_to(ROOT / CRATE))
        if "tests/" not in name and not name.endswith("tests.rs"):
            found[name] = path.read_text()
    return found


def constants(code, refused):
    """File and name of what can be scaled."""
    return {
        (file, match.group(2))
        for file, text in code.items()
        if not file.startswith(LEFT_OUT)
        for match in DEFINED.finditer(text.split("\n#[cfg(test)]\nmod tests {")[0])
        if match.group(2) not in refused
    }


def rewritten(code, chosen):
    """The code with functions in the place of constants."""
    defined = {}
    for file, text in code.items():
        for name in ANY_CONST.findall(text):
            defined.setdefault(name, set()).add(file)

    def is_scaled(file, name):
        files = defined.get(name, set())
        if file in files:
            return (file, name) in chosen
        return bool(files) and all((other, name) in chosen for other in files)

    for file, text in code.items():

        def definition(match, file=file):
            visible, name, kind, value = match.groups()
            if (file, name) not in chosen:
                return match.group(0)
            attribute = "#[allow(non_snake_case, non_upper_case_globals)] "
            once = f"static once: std::sync::OnceLock<{kind}> = std::sync::OnceLock::new(); "
            scaled = f'*once.get_or_init(|| crate::tuned::value("{file}::{name}", {value}))'
            return f"{attribute}{visible or ''}fn {name}() -> {kind} {{ {once}{scaled} }}"

        def use(match, file=file):
            name, path = match.group("name"), match.group("path") or ""
            of_type = path and path.split("::")[-2][:1].isupper()
            if not name or of_type or not is_scaled(file, name):
                return match.group(0)
            return f"{path}{name}()"

        yield file, TOKEN.sub(use, DEFINED.sub(definition, text))


def prepare(folder, parts):
    """The copy whose constants are scaled by the environment, and their names."""
    code, refused = sources(), set()
    copy(folder, {str(CRATE / file) for file in code})
    write(folder / CRATE / "tuned.rs", TUNED.encode())
    while True:
        chosen = constants(code, refused)
        for file, text in rewritten(code, chosen):
            if file == "lib.rs":
                crates = "extern crate alloc;"
                text = text.replace(crates, f"{crates}\nextern crate std;\nmod tuned;")
            write(folder / CRATE / file, text.encode())
        wrong = refusals(folder)
        if not wrong:
            break
        refused |= wrong
    left = ", ".join(sorted(refused))
    print(f"{len(chosen)} constants; left out, as the compiler needs them: {left}", file=sys.stderr)
    names = sorted(f"{file}::{name}" for file, name in chosen)
    return [name for name in names if not parts or any(part in name for part in parts)]


def build(folder):
    command = ["cargo", "build", "--release", "--locked", "-p", "marline-cli"]
    # A program that is built quickly and runs a little slower.
    for part in ("base", "link", "proto", "sim"):
        command.append(f"--config=profile.release.package.marline-{part}.codegen-units=16")
    quick = {"CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16", "CARGO_PROFILE_RELEASE_LTO": "false"}
    subprocess.run(command, cwd=folder, env=os.environ | quick, check=True)
    return folder_target(folder) / "release/marline"


def folder_target(folder):
    return Path(os.environ.get("CARGO_TARGET_DIR", folder / "target"))


def refusals(folder):
    """Names of constants at places where the compiler takes no function."""
    command = ["cargo", "check", "--locked", "-p", "marline-proto", "--message-format=json"]
    checked = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if checked.returncode == 0:
        return set()
    names = set()
    for line in checked.stdout.splitlines():
        message = json.loads(line).get("message") if line.startswith("{") else None
        if isinstance(message, dict) and message["level"] == "error":
            for span in message["spans"]:
                for text in span["text"]:
                    names |= set(re.findall(r"\b([A-Z][A-Z0-9_]*)\(\)", text["text"]))
    if not names:
        sys.exit(f"the copy does not build, and not for a constant: cargo check in {folder}")
    return names


def measure(program, seed, traces, name=None, factor=None, read=None):
    """What the bench measures, by cell and measure."""
    environment = dict(os.environ)
    if name:
        environment["MARLINE_SCALE"] = f"{name}={factor}"
    if read:
        environment["MARLINE_CONSTANTS_READ"] = str(read)
    command = [program, "repro", "field", "--quick", "--auto-only", "--json"]
    command += ["--seed", str(seed), "--traces", traces]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if run.returncode != 0:
        return None
    rows = json.loads(run.stdout)["rows"]
    cells = ("set", "place", "load", "measure")
    return {tuple(row[key] for key in cells): row["auto"] for row in rows if not row["one_link"]}


def effects(plain, scaled):
    """Mean and standard error of the logarithm of scaled over plain, for each measure."""
    found = []
    for wanted in MEASURES:
        # Shares are often nothing; a thousandth (in percent: a tenth) is no difference.
        floor = 0.1 if wanted == "given up" else 1e-9
        both = [key for key in plain if key[3] == wanted and key in scaled]
        logs = [math.log((scaled[key] + floor) / (plain[key] + floor)) for key in both]
        # Without recorded links there may be a single cell, or none.
        mean = statistics.fmean(logs) if logs else 0.0
        found += [mean, statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0]
    return found


def shown(runs):
    """The seeds of one scaling together."""
    if any(run == ["fails"] for run in runs):
        return "fails"
    if all(run == ["="] for run in runs):
        return "        ="
    effects = [[0.0] * 2 * len(MEASURES) if run == ["="] else list(map(float, run)) for run in runs]
    columns = []
    for at in range(0, 2 * len(MEASURES), 2):
        mean = statistics.fmean(effect[at] for effect in effects)
        error = math.hypot(*(effect[at + 1] for effect in effects)) / len(effects)
        columns.append(f"{math.exp(mean):8.3f}{'*' if abs(mean) > 2 * error > 0 else ' '}")
    return " ".join(columns)


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--dir", type=Path, default=ROOT / "target/sensitivity")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--traces", default="../shared/traces")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    if options.help:
        print(__doc__.strip())
        return
    try:
        seeds = [int(seed) for seed in options.seeds.split(",")]
    except ValueError:
        sys.exit(f"--seeds takes numbers with commas between them, such as 1,2,3: {options.seeds}")
    folder = options.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = prepare(folder, options.parts)
    if options.list:
        print("\n".join(names))
        return
    program = build(folder)
    read = folder / "read.txt"
    read.unlink(missing_ok=True)
    plain = {seed: measure(program, seed, options.traces, read=read) for seed in seeds}
    if None in plain.values():
        sys.exit("the bench itself fails: " + " ".join(map(str, (program, "repro field --quick"))))
    seen = set(read.read_text().split())
    files = {seed: folder / f"seed-{seed}.csv" for seed in seeds}
    done = {}
    for seed, file in files.items():
        if file.exists():
            with file.open() as lines:
                done.update({(seed, line[0], line[1]): line[2:] for line in csv.reader(lines)})
    reached = [name for name in names if name in seen]
    jobs = [(name, way) for name in reached for way in FACTORS]
    width = max(map(len, reached), default=0)
    print(" " * (width + 8) + " ".join(f"{wanted:>9.9}" for wanted in MEASURES))
    for number, (name, way) in enumerate(jobs, 1):
        print(f"\r{number} of {len(jobs)}", end="", file=sys.stderr, flush=True)
        for seed in seeds:
            if (seed, name, way) in done:
                continue
            scaled = measure(program, seed, options.traces, name, FACTORS[way])
            if scaled is None:
                values = ["fails"]
            elif scaled == plain[seed]:
                values = ["="]
            else:
                values = list(map(str, effects(plain[seed], scaled)))
            done[seed, name, way] = values
            with files[seed].open("a", newline="") as file:
                csv.writer(file).writerow([name, way, *values])
        text = shown([done[seed, name, way] for seed in seeds])
        print(f"\r{name:{width}} {way:6} {text}".rstrip(), flush=True)
    missed = [name for name in names if name not in seen]
    print(f"\nNever read by the bench: {len(missed)}")
    print("\n".join(f"  {name}" for name in missed))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; the same command goes on from here")
