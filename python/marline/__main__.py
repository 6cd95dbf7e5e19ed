"""`python -m marline sweep PLAN --engine ENGINE --out DIR`."""

import argparse
import sys

from . import ScenarioError, SweepError, __version__, sweep


def main(words: list[str] | None = None) -> int:
    """Runs a sweep from the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m marline", description=__doc__)
    parser.add_argument("--version", action="version", version=f"marline {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser(
        "sweep",
        help="make the runs of a plan",
        description="Make the runs of a plan that `marline sim sweep FILE --plan PLAN` wrote. "
        "Killed and started again, it goes on where it was.",
    )
    one.add_argument("plan", metavar="PLAN")
    one.add_argument("--engine", choices=["local", "ray", "dask", "slurm"], default="local")
    one.add_argument("--out", metavar="DIR", required=True, help="folder for the results")
    one.add_argument("--workers", metavar="N", type=int, help="tasks at once [one a core]")
    one.add_argument("--retries", metavar="N", type=int, default=3, help="of a failed task [3]")
    one.add_argument("--setup", metavar="MODULE", help="a module that workers import first")
    one.add_argument("--address", help="of a Ray or Dask cluster")
    one.add_argument("--sbatch", metavar="FLAG", action="append", help="a flag for sbatch")
    asked = parser.parse_args(words)
    options = {"address": asked.address, "sbatch": asked.sbatch}
    try:
        results = sweep(
            asked.plan,
            asked.engine,
            out=asked.out,
            workers=asked.workers,
            retries=asked.retries,
            setup=asked.setup,
            progress=True,
            **{key: value for key, value in options.items() if value is not None},
        )
    except (ScenarioError, SweepError, OSError, ValueError, RuntimeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on from here", file=sys.stderr)
        return 130
    print(f"{len(results)} runs are in {asked.out}: results.parquet and others")
    return 0


if __name__ == "__main__":
    sys.exit(main())
