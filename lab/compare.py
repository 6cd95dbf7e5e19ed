#!/usr/bin/env python3
"""Two programs over the bench of links that nobody chose, with the same seeds: what has a change
of the protocol done to what users feel?

Usage: lab/compare.py [--traces DIR] OLD NEW SEED...

OLD and NEW are programs (`cargo build --release`, copied away). A seed takes each some 15 s of one
core, in virtual time. DIR has recorded links (../shared/traces); without them, drawn and
misbehaving ones are run.

Prints what NEW measures over what OLD does, as geometric mean over all cells and its standard
error: of goodput more is better, of all else less. `*`: farther from 1 than two standard errors.
Take seeds that did not shape the change, and ten of them or more: by itself one changes live p99
by 3 to 5 %.
"""

import argparse
import math
import sys

from sensitivity import MEASURES, effects, measure


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("--traces", default="../shared/traces")
    parser.add_argument("programs", nargs=2)
    parser.add_argument("seeds", nargs="+", type=int)
    options = parser.parse_args()
    old, new = {}, {}
    for number, seed in enumerate(options.seeds, 1):
        print(f"\r{number} of {len(options.seeds)}", end="", file=sys.stderr, flush=True)
        for program, found in zip(options.programs, (old, new)):
            cells = measure(program, seed, options.traces)
            if cells is None:
                sys.exit(f"\n{program} repro field --quick --seed {seed} fails")
            found.update({(*cell, seed): value for cell, value in cells.items()})
    found = effects(old, new)
    print(file=sys.stderr)
    for wanted, mean, error in zip(MEASURES, found[::2], found[1::2]):
        sure = "*" if abs(mean) > 2 * error > 0 else ""
        print(f"{wanted:14} {math.exp(mean):.3f} ± {error:.3f} {sure}".rstrip())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped")
