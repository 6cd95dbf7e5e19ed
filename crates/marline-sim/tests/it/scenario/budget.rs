//! `settings.repair-budget` bounds what runs spend on repair symbols.

use marline_sim::run::run;
use marline_sim::scenario::{Document, explain};

/// A live stream of 12 MB over paths that lose a tenth, all of it measured.
const LOSSY: &str = r#"
title = "Two lossy links"
duration = "12s"
schedulers = ["mend"]
links.a = { rate = "10mbit", delay = "25ms", loss = "10%" }
links.b = { rate = "10mbit", delay = "25ms", loss = "10%" }
workloads = [{ name = "live", kind = "constant", flow = "stream", rate = "8mbit", size = 1000 }]
"#;
const BYTES: f64 = 12e6;

/// Bytes of repair symbols over bytes of source symbols, and what `sim check` says.
fn spent(scheduler: &str, budget: Option<&str>) -> (f64, String) {
    let mut document = Document::parse("s.toml", LOSSY).unwrap();
    if let Some(budget) = budget {
        document
            .set(&format!("settings.repair-budget={budget}"))
            .unwrap();
    }
    let found = document.scenarios(&|_| Err("no files".into())).unwrap();
    let (_, scenario) = &found[0];
    let run = run(scenario, scheduler, 1);
    (run.values["live.repairs"], explain(&document, scenario))
}

#[test]
fn a_run_spends_its_budget_on_repair_symbols_and_no_more() {
    for scheduler in ["mend", "s-edpf:tau=3"] {
        // What it asks for by itself at such a loss, and may have.
        let (wanted, said) = spent(scheduler, None);
        assert!((0.15..0.51).contains(&wanted), "{scheduler}: {wanted}");
        assert!(!said.contains("repair symbols up to"), "{said}");
        for (percent, budget) in [("2%", 0.02), ("5%", 0.05), ("12%", 0.12)] {
            let (spent, said) = spent(scheduler, Some(percent));
            // The start of 3000 bytes, and what may be saved up over 256 KiB, as the session's
            // configuration says.
            let ahead = (3_000.0 + budget * 262_144.0) / BYTES;
            assert!(spent <= budget + ahead, "{scheduler}: {spent} of {percent}");
            assert!(spent >= 0.8 * budget, "{scheduler}: {spent} of {percent}");
            let told = format!("repair symbols up to {percent} of its bytes");
            assert!(said.contains(&told), "{said}");
        }
        assert_eq!(spent(scheduler, Some("0%")).0, 0.0);
    }
}
