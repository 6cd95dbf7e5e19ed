#!/usr/bin/env bash
# A recorded demo, replayed: the live stream's median and 99th percentile in the simulator against
# those that the demo had by real sockets. Ends with 1 where they differ by more than 15 %.
#   lab/replay.sh [SECONDS_OF_A_RUN]
set -euo pipefail
marline=$(realpath "${MARLINE:-target/release/marline}")
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
"$marline" demo --seconds "${1:-20}" --schedulers auto --record . --json >demo.json
for run in link-a-alone link-b-alone bonded-auto; do
    "$marline" sim run examples/demo --links $run.jsonl --seeds 5 --json >$run.json 2>$run.log
done
python3 - <<'END'
import json, statistics, sys

demo = {run["name"]: run["figures"] for run in json.load(open("demo.json"))["runs"]}
worst = 0
print(f"{'':16}{'p50 demo':>10}{'replayed':>10}{'p99 demo':>10}{'replayed':>10}   Mb/s demo, replayed")
for name, file in [("link A alone", "link-a-alone"), ("link B alone", "link-b-alone"), ("bonded, auto", "bonded-auto")]:
    runs = json.load(open(f"{file}.json"))["runs"]
    replayed = lambda key: statistics.mean(run["values"][key] for run in runs)
    had, line = demo[name]["live"]["delay_ms"], f"{name:16}"
    for quantile in ["p50", "p99"]:
        again = replayed(f"live.in_order_delay.{quantile}_ms")
        line += f"{had[quantile]:10.1f}{again:10.1f}"
        worst = max(worst, abs(again / had[quantile] - 1))
    print(f"{line}   {demo[name]['download']['goodput_mbps']:.1f}, {replayed('download.goodput_mbps'):.1f}")
print(f"the largest difference of a median or 99th percentile is {worst:.1%}")
sys.exit(worst > 0.15)
END
