//! Paths whose largest packets differ.

use super::*;

/// Paths of 9000 and 1500 bytes carry together what each carries alone, whatever the flow: were all
/// datagrams cut to the narrower one, headers would cost the wider one twentieth.
#[test]
fn paths_of_different_sizes_carry_their_sum() {
    let (wide, narrow) = (link("wide", 8_900), link("narrow", 1_400));
    for flow in [
        "flow = \"stream\"",
        "flow = \"packets\"\nordered = true\nlifetime = \"1s\"\nsize = 1200",
    ] {
        for scheduler in ["auto", "edpf"] {
            let rate = |links: &[&String]| {
                let links: String = links.iter().map(|text| text.as_str()).collect();
                let text = format!(
                    "title = \"Sizes\"\nduration = \"8s\"\nwarmup = \"4s\"\n\
                    schedulers = [\"{scheduler}\"]\n{links}[[workloads]]\nname = \"bulk\"\n\
                    kind = \"backlogged\"\n{flow}\n"
                );
                value(&run_of(&text, &[], 1), "bulk.goodput_mbps")
            };
            let sum = rate(&[&wide]) + rate(&[&narrow]);
            let both = rate(&[&wide, &narrow]);
            assert!(
                both > 0.99 * sum,
                "{scheduler}, {flow}: {both} of {sum} Mb/s"
            );
        }
    }
}

fn link(name: &str, datagram: u32) -> String {
    // IPv4, UDP and QUIC's own: 66 bytes around each datagram.
    format!(
        "[links.{name}]\ndelay = \"10ms\"\nrate = \"50mbit\"\noverhead = 66\ndatagram = {datagram}\n"
    )
}
