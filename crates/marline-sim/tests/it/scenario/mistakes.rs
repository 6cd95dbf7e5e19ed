//! Every mistake names its line, its key and the mend.

use marline_sim::scenario::{Document, Mistakes, Place};

/// A scenario without mistakes. Cases replace one line of it.
const GOOD: &str = r#"title = "Live stream over a short and a long link"
duration = "60s"
warmup = "5s"
seeds = 10
schedulers = ["min-rtt", "edpf"]
congestion = "cubic"
[links.a]
rate = "6mbit"
delay = "10ms"
[links.b]
rate = "6mbit"
queue = "100p"
[[paths]]
link = "a"
joins = "2s"
leaves = "30s"
[[workloads]]
name = "live"
kind = "constant"
rate = "4mbit"
size = 1200
[[changes]]
at = "10s"
link = "b"
dark = true
[vary]
"links.b.delay" = ["10ms", "20ms"]
[[expect]]
figure = "Table I"
scheduler = "edpf"
cell = { "links.b.delay" = "20ms" }
measure = "live.goodput_mbps"
most = 100
"#;

fn check(text: &str) -> Result<(), Mistakes> {
    let document = Document::parse("s.toml", text)?;
    let files = |name: &str| match name {
        "bad.csv" => Ok("t_ms,size\n0,1\n".into()),
        "bad.json" => Ok("{".into()),
        _ => Err("no such file".into()),
    };
    document.scenarios(&files).map(drop)
}

/// The line to replace, what stands there instead, the line and the key of the mistake, a part of
/// the message and a part of the mend.
type Case = (
    usize,
    &'static str,
    usize,
    &'static str,
    &'static str,
    &'static str,
);

/// Replaces workload `live` (lines 19 to 21) by another kind.
const KIND: usize = 19;

#[rustfmt::skip]
const CASES: &[Case] = &[
    // The top.
    (1, "titel = \"x\"", 1, "titel", "no such key", "did you mean `title`?"),
    (1, "title = \"\"", 1, "title", "cannot be read", "not empty"),
    (1, "title = \"x", 1, "title", "invalid basic string", "write TOML"),
    (1, "title is good", 1, "", "expected `=`", "write TOML"),
    (1, "title = 2026-01-01", 1, "title", "no dates", "\"10s\""),
    (1, "duration = \"1s\"", 2, "duration", "duplicate key", "remove one of the two"),
    (9, "rate = \"1mbit\"", 9, "links.a.rate", "duplicate key", "remove one of the two"),
    (13, "[links.a]", 13, "links.a", "duplicate key", "remove one of the two"),
    (33, "most = nan", 33, "expect.most", "not a finite number", "write a number"),
    (2, "", 1, "duration", "is missing", "duration = \"60s\""),
    (2, "duration = 60", 2, "duration", "\"60\" cannot be read", "give a number with ns, us, ms, s or min"),
    (2, "duration = \"0\"", 2, "duration", "out of range", "from 1us to 1440min"),
    (2, "duration = [\"1s\"]", 2, "duration", "is a list", "not a time"),
    (3, "warmup = \"60s\"", 3, "warmup", "not shorter than the run", "less than `duration`"),
    (3, "turn = \"1001ms\"", 3, "turn", "out of range", "from 0ms to 1s"),
    (4, "seeds = 0", 4, "seeds", "0 is out of range", "from 1 to 10000"),
    (4, "seeds = [1, 1]", 4, "seeds", "1 comes twice", "each seed once"),
    (4, "seeds = []", 4, "seeds", "an empty list", "at least one"),
    (4, "seeds = 99999999999999999999", 4, "seeds", "too large", "at most 2^63"),
    (4, "seeds = [1, \"x\"]", 4, "seeds", "not a list of seeds", "how many repeats"),
    (5, "", 1, "schedulers", "is missing", "schedulers = ["),
    (5, "schedulers = [\"redundnt\"]", 5, "schedulers", "unknown scheduler `redundnt`", "did you mean `redundant`?"),
    (5, "schedulers = [\"edpf\", \"edpf\"]", 5, "schedulers", "`edpf` comes twice", "once"),
    (5, "schedulers = []", 1, "schedulers", "is missing", "or \"all\""),
    (5, "schedulers = [\"edpf:x=1\"]", 5, "schedulers", "no option `x`", "its options: "),
    (6, "congestion = \"cubik\"", 6, "congestion", "unknown congestion controller", "did you mean the congestion controller `cubic`?"),
    (6, "congestion = \"fixed\"", 6, "congestion", "needs a rate", "fixed=20mbit"),
    (6, "congestion = \"cubic=1mbit\"", 6, "congestion", "takes no rate", "write `cubic`"),
    (6, "settings = { dead-after = \"1ms\" }", 6, "settings.dead-after", "out of range", "from 10ms"),
    (6, "settings = { repair-budget = \"500%\" }", 6, "settings.repair-budget", "500% is out of range", "from 0% to 400%"),
    (6, "settings = { repair-budget = \"20mbit\" }", 6, "settings.repair-budget", "\"20mbit\" cannot be read", "such as \"20%\""),
    (6, "settings = { max-flow = 3 }", 6, "settings.max-flow", "no such key", "`max-flows`"),
    // Links.
    (7, "[links.A]", 7, "links.A", "not a name", "small letters"),
    (8, "rate = \"0mbit\"", 8, "links.a.rate", "is wrong", "at least 1.0 kb/s"),
    (8, "rate = \"6mb\"", 8, "links.a.rate", "\"6mb\" is wrong", "such as 20mbit"),
    (8, "rat = \"6mbit\"", 8, "links.a.rat", "no such key of a link", "`rate`"),
    (8, "trace = \"none.down\"", 8, "links.a.trace", "\"none.down\" is wrong", "no such file; name a file relative to the scenario's folder"),
    (8, "rate = { x = 1 }", 8, "links.a.rate", "is a table", "\"20mbit\""),
    (9, "delay = \"10\"", 9, "links.a.delay", "\"10\" is wrong", "such as 15ms"),
    (9, "loss = 2", 9, "links.a.loss", "is wrong", "0% to 100%"),
    (9, "overhead = 5000", 9, "links.a.overhead", "5000 is out of range", "from 0 to 1000"),
    (9, "down = \"1ms\"", 9, "links.a.down", "is a text, not a table", "[links.a.down]"),
    (9, "down.dealy = \"1ms\"", 9, "links.a.down.dealy", "no such key of a link", "`delay`"),
    (12, "queue = \"0p\"", 12, "links.b.queue", "is wrong", "more than zero"),
    (12, "jitter-dist = \"gamma\"", 12, "links.b.jitter-dist", "is wrong", "needs jitter"),
    // Paths.
    (14, "link = \"c\"", 14, "paths.c.link", "no link is called `c`", "known: a, b"),
    (14, "cost = 1", 13, "paths.1.link", "is missing", "link = \"a\""),
    (15, "joins = \"40s\"", 16, "paths.a.leaves", "leaves before it has joined", "after `joins`"),
    (15, "joins = \"60s\"", 15, "paths.a.joins", "the run is over", "before `duration`"),
    (15, "standby = \"maybe\"", 15, "paths.a.standby", "\"maybe\" is not known", "yes, no"),
    (15, "cost = -1", 15, "paths.a.cost", "\"-1\" cannot be read", "from 0 to"),
    // Workloads.
    (17, "[workloads]", 17, "workloads", "not a list of tables", "[[workloads]]"),
    (18, "name = \"Live Stream\"", 17, "workloads.Live Stream.name", "is no name", "small letters"),
    (18, "name = \"path\"", 17, "workloads.path.name", "`path` is no name", "not path, link or cross"),
    (19, "", 17, "workloads.live.kind", "is missing", "kind = \"constant\""),
    (19, "kind = \"konstant\"", 19, "workloads.live.kind", "\"konstant\" is not known", "did you mean `constant`?"),
    (20, "", 17, "workloads.live.rate", "is missing", "rate = \"10mbit\""),
    (20, "rate = \"4\"", 20, "workloads.live.rate", "\"4\" cannot be read", "such as 20mbit"),
    (21, "size = 4", 21, "workloads.live.size", "out of range", "from 8 bytes"),
    (21, "size = \"12 horses\"", 21, "workloads.live.size", "cannot be read", "\"20kB\""),
    (21, "priority = 8", 21, "workloads.live.priority", "8 is out of range", "from 0 to 7"),
    (21, "from = \"sever\"", 21, "workloads.live.from", "\"sever\" is not known", "did you mean `server`?"),
    (21, "flow = \"packet\"", 21, "workloads.live.flow", "\"packet\" is not known", "`packets`"),
    (21, "flow = \"stream\"\nordered = false", 22, "workloads.live.ordered", "always in order", "flow = \"packets\""),
    (21, "flow = \"stream\"\nlifetime = \"1s\"", 22, "workloads.live.lifetime", "never given up", "flow = \"packets\""),
    (21, "flow = \"stream\"\nqueue = \"9kB\"", 22, "workloads.live.queue", "only messages", "flow = \"packets\""),
    (21, "starts = \"9s\"\nstops = \"8s\"", 22, "workloads.live.stops", "before it starts", "after `starts`"),
    (21, "starts = \"61s\"", 21, "workloads.live.starts", "the run is over", "before `duration`"),
    (21, "scheduler = \"redundnt\"", 21, "workloads.live.scheduler", "unknown scheduler", "`redundant`"),
    (21, "deadline = \"1s\"", 21, "workloads.live.deadline", "no such key", "known:"),
    (21, "[[workloads]]\nname = \"live\"\nkind = \"backlogged\"", 17, "workloads", "two workloads are called `live`", "of its own"),
    (KIND, "kind = \"blocks\"\nevery = \"1s\"\ndeadline = 0", 21, "workloads.live.deadline", "0ms is out of range", "from 1us"),
    (KIND, "kind = \"video\"\nplayout = \"1s\"\nframes = \"none.csv\"", 21, "workloads.live.frames", "no such file", "scenario's folder"),
    (KIND, "kind = \"video\"\nplayout = \"1s\"\nframes = \"bad.csv\"", 21, "workloads.live.frames", "size_bytes", "scenario's folder"),
    (KIND, "kind = \"web\"\npages = \"bad.json\"\npage = \"x\"", 20, "workloads.live.pages", "bad.json", "scenario's folder"),
    (KIND, "kind = \"web\"", 17, "workloads.live.objects", "is missing", "pages.json"),
    (KIND, "kind = \"web\"\nobjects = [{ size = 9 }, { size = 9, after = \"x\" }]", 20, "workloads.live.objects.2.after", "no object before it is called `x`", "known"),
    (KIND, "kind = \"web\"\nobjects = [{ name = \"x\", size = 9 }, { name = \"x\", size = 9 }]", 20, "workloads.live.objects.2.name", "two objects are called `x`", "of its own"),
    (KIND, "kind = \"bursts\"\nevery = \"1s\"\npause = \"1s\"\nrequest = \"normal:1kB\"", 22, "workloads.live.request", "cannot be read", "lognormal:MEAN/SD"),
    (KIND, "kind = \"bursts\"\nevery = \"1s\"\npause = \"1s\"\nrequest = 9\nburst = 0.5", 23, "workloads.live.burst", "0.5 is out of range", "at least 1"),
    (KIND, "kind = \"tcp\"\ncongestion = \"fixed=1mbit\"", 20, "workloads.live.congestion", "no fixed rate", "cubic"),
    (KIND, "kind = \"tcp\"\nflow = \"stream\"", 20, "workloads.live.flow", "travels as packets", "flow = \"packets\""),
    (KIND, "kind = \"backlogged\"\nflow = \"blocks\"", 20, "workloads.live.flow", "no backlog", "kind = \"blocks\""),
    // Changes.
    (22, "[[cross]]\nkind = \"poisson\"", 26, "cross.poisson.dark", "no such key", "known: kind, name, link"),
    (23, "at = \"70s\"", 23, "changes.1.at", "the run is over", "before `duration`"),
    (23, "", 22, "changes.1.at", "is missing", "at = \"10s\""),
    (24, "link = \"wifi\"", 24, "changes.1.link", "no link is called `wifi`", "known: a, b"),
    (25, "dark = \"side\"", 25, "changes.1.dark", "\"side\" is not known", "yes, no, up, down"),
    (25, "", 22, "changes.1.set", "is missing", "dark = true"),
    (25, "dark = true\nset.delay = \"1ms\"", 26, "changes.1.set", "either `dark` or `set`", "two [[changes]]"),
    (25, "set.delay = \"x\"", 25, "changes.1.set.delay", "\"x\" is wrong", "such as 15ms"),
    // Handovers.
    (22, "[[handovers]]\nevery = \"9s\"\nlink = \"a\"\n[[changes]]", 22, "handovers.1.cells", "is missing", "delay ="),
    (22, "[[handovers]]\nlink = \"a\"\ncells = [{ delay = \"9ms\" }]\n[[changes]]", 22, "handovers.1.every", "is missing", "every = \"20s\""),
    (22, "[[handovers]]\nevery = \"9ms\"\nlink = \"a\"\ncells = [{ delay = \"9ms\" }]\n[[changes]]", 23, "handovers.1.every", "9ms is out of range", "from 100ms"),
    (22, "[[handovers]]\nevery = \"9s\"\nlink = \"a\"\ncells = [{ dealy = \"9ms\" }]\n[[changes]]", 25, "handovers.1.cells.1.dealy", "no such key", "delay"),
    (25, "set.delay = \"9ms\"\n[[handovers]]\nevery = \"9s\"\nlink = \"b\"\ncells = [{ delay = \"9ms\" }]", 28, "handovers.1.link", "would undo", "a cell"),
    // Axes.
    (27, "\"links.c.delay\" = [\"1ms\"]", 27, "vary.links.c.delay", "has no `c`", "known: a, b"),
    (27, "\"links.b.delay\" = \"20ms\"", 27, "vary.links.b.delay", "is a text, not a list", "in [ ]"),
    (27, "\"links.b.delay\" = []", 27, "vary.links.b.delay", "has no value", "at least one"),
    (27, "\"links.b.delay\" = [\"20ms\", \"20ms\"]", 27, "vary.links.b.delay", "`20ms` comes twice", "remove one"),
    (27, "\"links.b.delay\" = [\"20ms\", \"x\"]", 27, "links.b.delay", "\"x\" is wrong", "such as 15ms"),
    (27, "\"links.b.delay\" = [\"20ms\", [1]]", 27, "vary.links.b.delay", "a list cannot be a value", "name ="),
    (27, "\"links.b.delay\" = [\"20ms\"]\n\"workloads.web.size\" = [9]", 28, "vary.workloads.web.size", "has no `web`", "live"),
    // Expectations.
    (29, "", 28, "expect.1.figure", "is missing", "Figure 3"),
    (30, "scheduler = \"redundant\"", 30, "expect.1.scheduler", "not among `schedulers`", "known: min-rtt, edpf"),
    (31, "cell = { \"links.b.dealy\" = \"20ms\" }", 31, "expect.1.cell.links.b.dealy", "is not varied", "`links.b.delay`"),
    (31, "cell = { \"links.b.delay\" = \"30ms\" }", 31, "expect.1.cell.links.b.delay", "none of its values", "10ms, 20ms"),
    (32, "", 28, "expect.1.measure", "is missing", "p99_ms"),
    (32, "measure = \"live.goodput\"", 32, "expect.1.measure", "yield no `live.goodput`", "did you mean `live.goodput_mbps`?"),
    (32, "measure = \"livid.zzzzzzzz\"", 32, "expect.1.measure", "yield no", "marline sim list"),
    (33, "", 28, "expect.1.most", "is missing", "least = 0.95"),
    (33, "least = 2\nmost = 1", 33, "expect.1.least", "2 is more than `most`, 1", "exchange"),
    (33, "bound = \"none\"\nmost = 1", 33, "expect.1.bound", "there is one", "leave `bound` out"),
    (33, "most = \"few\"", 33, "expect.1.most", "\"few\" cannot be read", "write a number"),
    (33, "relative_to = \"edpf\"\nmost = 1", 33, "expect.1.relative_to", "no such key", "`relative-to`"),
    (33, "relative-to = \"edfp\"\nmost = 1", 33, "expect.1.relative-to", "not among `schedulers`", "`edpf`"),
];

#[test]
fn the_scenario_that_the_cases_spoil_is_good() {
    check(GOOD).unwrap();
}

#[test]
fn every_mistake_names_its_line_its_key_and_the_mend() {
    assert!(CASES.len() >= 50, "{} cases", CASES.len());
    let mut failed = Vec::new();
    for case in CASES {
        let (number, new, line, key, message, mend) = *case;
        let mut lines: Vec<&str> = GOOD.lines().collect();
        lines[number - 1] = new;
        let found = match check(&lines.join("\n")) {
            Ok(()) => {
                failed.push(format!("{new:?} in line {number}: no mistake found"));
                continue;
            }
            Err(mistakes) => mistakes,
        };
        let named = found.list().iter().any(|found| {
            matches!(&found.place, Place::File { file, line: at, .. } if &**file == "s.toml" && *at == line)
                && found.key == key
                && found.message.contains(message)
                && found.mend.contains(mend)
        });
        if !named {
            failed.push(format!(
                "{new:?} in line {number}, expected {line} `{key}` {message}; {mend}:\n{found}"
            ));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn the_column_is_that_of_the_value() {
    let text = GOOD.replace("delay = \"10ms\"", "delay =    \"é10\"");
    let mistakes = check(&text).unwrap_err().to_string();
    assert!(
        mistakes.starts_with("s.toml:9:12: key `links.a.delay`: "),
        "{mistakes}"
    );
}

#[test]
fn all_mistakes_are_found_at_once_and_each_once() {
    let text = GOOD
        .replace("warmup = \"5s\"", "warmup = \"5\"")
        .replace("delay = \"10ms\"", "dealy = \"10ms\"")
        // Paths, changes and axes over the link say nothing of it.
        .replace("queue = \"100p\"", "queue = \"100\"")
        .replace("kind = \"constant\"", "kind = \"constand\"");
    let mistakes = check(&text).unwrap_err();
    let keys: Vec<&str> = mistakes
        .list()
        .iter()
        .map(|found| found.key.as_str())
        .collect();
    let all = [
        "warmup",
        "links.a.dealy",
        "links.b.queue",
        "workloads.live.kind",
    ];
    assert_eq!(keys, all);
}

#[test]
fn flags_are_named_as_they_were_written() {
    let mut document = Document::parse("s.toml", GOOD).unwrap();
    for (flag, parts) in [
        (
            "links.c.rate=1mbit",
            ["--set links.c.rate=1mbit", "known: a, b"],
        ),
        (
            "lniks.a.rate=1mbit",
            ["no `lniks`", "did you mean `links`?"],
        ),
        ("workloads.web.rate=1mbit", ["no `web`", "known: live"]),
        ("workloads=3", ["a list of tables", "workloads.NAME.KEY"]),
        ("duration.x=3", ["leads nowhere", "single value"]),
        ("vary.x=3", ["axes are not set", "--vary"]),
        ("links.a.rate", ["no key and value", "KEY=VALUE"]),
        ("=3", ["no key and value", "KEY=VALUE"]),
        ("links..rate=3", ["not a dotted key", "one dot"]),
        ("seeds=[1", ["--set seeds=[1", "as in the file"]),
    ] {
        let error = document.set(flag).unwrap_err().to_string();
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{flag}: {error}"
        );
    }
    document.set("links.a.rat=1mbit").unwrap();
    let error = document
        .scenarios(&|_| Err("none".into()))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--set links.a.rat=1mbit: key `links.a.rat`"),
        "{error}"
    );
    assert!(error.contains("did you mean `rate`?"), "{error}");
}
