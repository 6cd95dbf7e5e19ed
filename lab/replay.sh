#!/usr/bin/env bash
# Recorded demos, replayed: the live stream's median and 99th percentile in the simulator against
# those that the demos had by real sockets. Both are means over some demos, as what follows a dark
# link hangs on when a probe finds it again. Ends with 1 where medians differ by more than 15 %,
# 99th percentiles by more than 20 % (that of the demo's own links, bonded in the simulator without
# a recording, goes from 58 to 88 ms by seed, with a mean of 66), or by more than the demos do among
# themselves if that is more.
#   lab/replay.sh [SECONDS_OF_A_RUN [DEMOS]]
set -euo pipefail
marline=$(realpath "${MARLINE:-target/release/marline}")
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cd "$folder"
demos=${2:-5}
for number in $(seq "$demos"); do
    mkdir "$number"
    "$marline" demo --seconds "${1:-20}" --schedulers auto --record "$number" --json >"$number/demo.json"
    for run in link-a-alone link-b-alone bonded-auto; do
        "$marline" sim run examples/demo --links "$number/$run.jsonl" --seeds 5 --json >"$number/$run.json" 2>"$number/$run.log"
    done
    echo "demo $number of $demos"
done
python3 - "$demos" <<'END'
import json, statistics, sys

mean = statistics.mean
demos = [str(number + 1) for number in range(int(sys.argv[1]))]
worst = 0
print(f"{'':14}{'':5}{'demos: mean':>12}{'from':>8}{'to':>8}{'replayed':>10}{'differs by':>12}")
for name, file in [("link A alone", "link-a-alone"), ("link B alone", "link-b-alone"), ("bonded, auto", "bonded-auto")]:
    had = [next(run["figures"] for run in json.load(open(f"{demo}/demo.json"))["runs"] if run["name"] == name) for demo in demos]
    runs = [json.load(open(f"{demo}/{file}.json"))["runs"] for demo in demos]
    replayed = lambda key: mean(run["values"][key] for demo in runs for run in demo)
    for quantile in ["p50", "p99"]:
        were, again = [one["live"]["delay_ms"][quantile] for one in had], replayed(f"live.in_order_delay.{quantile}_ms")
        differs = abs(again / mean(were) - 1)
        bound = {"p50": 0.15, "p99": 0.2}[quantile]
        worst = max(worst, differs / max(bound, max(were) / mean(were) - 1, 1 - min(were) / mean(were)))
        print(f"{name:14}{quantile:5}{mean(were):12.1f}{min(were):8.1f}{max(were):8.1f}{again:10.1f}{differs:12.1%}")
    goodput = mean(one["download"]["goodput_mbps"] for one in had)
    print(f"{name:14}Mb/s {goodput:12.1f}{'':16}{replayed('download.goodput_mbps'):10.1f}")
sys.exit(worst > 1)
END
