//! An application that does not come with the crate.

use marline_proto::wire::FlowId;
use marline_proto::{Event, OpenError};
use marline_sim::End;
use marline_sim::measure::Measure;
use marline_sim::scenario::Outside;
use marline_sim::workload::{Context, Delivery, Pipe, Workload};

use super::*;
use crate::kit::ms;

/// One unit of 10 kB every 100 ms.
#[derive(Debug)]
struct Pulse {
    plan: WorkloadPlan,
    pipe: Option<Pipe>,
    deliveries: Vec<Delivery>,
}

impl Workload for Pulse {
    fn start(&mut self, cx: &mut Context<'_>) -> Result<(), OpenError> {
        self.pipe = Some(Pipe::open(cx, self.plan.from, &self.plan.flow)?);
        self.wake(cx);
        Ok(())
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.write(cx, 10_000, 0);
        }
        cx.wake_at(cx.now() + ms(100));
    }

    fn on_event(&mut self, cx: &mut Context<'_>, _: End, event: &Event) {
        let Some(pipe) = &mut self.pipe else { return };
        match event {
            Event::FlowWritable(_) => pipe.on_writable(cx),
            Event::FlowReadable(_) => pipe.read(cx, &mut self.deliveries),
            _ => {}
        }
        for delivery in self.deliveries.drain(..) {
            let now = cx.now();
            cx.meter.delay(Measure::InOrderDelay, delivery.written, now);
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        if let Some(pipe) = &mut self.pipe {
            pipe.settle(cx, None, &mut self.deliveries);
        }
    }

    fn flows(&self) -> Vec<(FlowId, End)> {
        self.pipe.iter().map(Pipe::sends).collect()
    }
}

#[test]
fn an_application_from_outside_runs_as_one_from_inside() {
    let pulse = |name: &str| {
        let outside = Outside::new(name, |plan| {
            Box::new(Pulse {
                plan: plan.clone(),
                pipe: None,
                deliveries: Vec::new(),
            })
        });
        assert_eq!(format!("{outside:?}"), format!("Outside({name:?})"));
        workload("pulse", Load::Outside(outside))
    };
    let links = vec![link("a", "rate=20mbit,delay=10ms,queue=200ms")];
    let scenario = scenario(links, vec![session("main", 1, vec![pulse("pulse")])]);
    let run = run(&scenario, "min-rtt", 1);
    // 15 s after the warm-up, one every 100 ms.
    assert_eq!(value(&run, "pulse.in_order_delay.count"), 150.0);
    // 10 kB take 4 ms, and some 2 % more for headers, after which the last byte travels 10 ms.
    let fastest = value(&run, "pulse.in_order_delay.min_ms");
    assert!((14.0..15.0).contains(&fastest), "{fastest} ms");
    let goodput = value(&run, "pulse.goodput_mbps");
    assert!((goodput - 0.8).abs() < 0.01, "{goodput} Mb/s");
    let words = marline_sim::scenario::value_names(&scenario);
    assert!(
        words
            .iter()
            .any(|name| name == "pulse.in_order_delay.p99_ms")
    );
}
