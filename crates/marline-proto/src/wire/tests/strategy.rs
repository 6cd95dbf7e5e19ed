//! Any frame and any parameters, with integers spread over all lengths and limits.

use super::std::sync::LazyLock;
use alloc::boxed::Box;
use alloc::vec::Vec;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::wire::*;

/// What data of frames is cut from: bytes that do not repeat at the distances in use.
static DATA: LazyLock<Vec<u8>> = LazyLock::new(|| {
    (0..MAX_MESSAGE as u32)
        .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8)
        .collect()
});

/// What reasons are cut from: characters of one to four bytes.
const TEXT: &str = "No — zu spät, 遅い, 🐢; the peer went away. ";

pub(super) fn data(max: usize) -> impl Strategy<Value = &'static [u8]> {
    let len = prop_oneof![0..=max.min(70), 0..=max];
    (len, 0..=DATA.len()).prop_map(|(len, start)| {
        let start = start.min(DATA.len() - len);
        &DATA[start..start + len]
    })
}

/// Integers up to `max`, as often short as long, and at the limits of the lengths.
pub(super) fn upto(max: u64) -> impl Strategy<Value = u64> {
    let cut = move |value: u64| value.min(max);
    prop_oneof![
        (0..1_u64 << 6).prop_map(cut),
        (0..1_u64 << 14).prop_map(cut),
        (0..1_u64 << 30).prop_map(cut),
        0..=max,
        prop::sample::select(&[63, 64, 16_383, 16_384, (1 << 30) - 1, 1 << 30, varint::MAX][..])
            .prop_map(cut),
    ]
}

pub(super) fn any_varint() -> impl Strategy<Value = u64> {
    upto(varint::MAX)
}

fn flow() -> impl Strategy<Value = FlowId> {
    any_varint().prop_map(FlowId)
}

fn path() -> impl Strategy<Value = PathId> {
    any_varint().prop_map(PathId)
}

/// An ACK as the receiver of packets builds it, of up to `ranges` ranges and three times as many
/// arrivals.
pub(super) fn ack(ranges: usize) -> impl Strategy<Value = Ack> {
    let range = (upto(1 << 20), upto(1 << 20), any::<[bool; 3]>());
    let dt = prop_oneof![-300..300_i64, -(1_i64 << 40)..1 << 40];
    (
        (path(), any_varint(), any_varint(), any_varint()),
        vec((range, [dt.clone(), dt.clone(), dt]), 1..=ranges),
    )
        .prop_map(|((path, largest, delay_us, arrival_us), steps)| {
            let mut ranges = Vec::new();
            let mut arrivals = Vec::<Arrival>::new();
            let mut at_us = arrival_us;
            let mut next = Some(largest);
            for ((gap, len, listed), dts) in steps {
                let Some(end) = next else { break };
                let start = end.saturating_sub(len);
                ranges.push(start..=end);
                for (i, packet) in [end, start + (end - start) / 2, start]
                    .into_iter()
                    .enumerate()
                {
                    let fresh = arrivals.last().is_none_or(|last| packet < last.packet);
                    if arrivals.is_empty() || (listed[i] && fresh) {
                        arrivals.push(Arrival { packet, at_us });
                        at_us = at_us.saturating_add_signed(-dts[i]).min(varint::MAX);
                    }
                }
                next = start.checked_sub(gap + 2);
            }
            Ack {
                path,
                delay_us,
                ranges,
                arrivals,
            }
        })
}

fn open_flow() -> impl Strategy<Value = OpenFlow<'static>> {
    let delivery = prop::sample::select(
        &[
            (FlowKind::Stream, DeliveryOrder::InOrder),
            (FlowKind::Packets, DeliveryOrder::InOrder),
            (FlowKind::Packets, DeliveryOrder::AsTheyCome),
            (FlowKind::Blocks, DeliveryOrder::AsTheyCome),
            (FlowKind::Objects, DeliveryOrder::AsTheyCome),
        ][..],
    );
    (
        flow(),
        delivery,
        0..=LEAST_PRIORITY,
        any_varint(),
        data(MAX_TARGET),
    )
        .prop_map(
            |(flow, (kind, order), priority, lifetime_us, target)| OpenFlow {
                flow,
                kind,
                order,
                priority,
                lifetime_us,
                target,
            },
        )
}

fn packet_part() -> impl Strategy<Value = PacketPart<'static>> {
    (
        flow(),
        any_varint(),
        data(2000),
        upto(1 << 16),
        upto(1 << 16),
    )
        .prop_map(|(flow, sequence, data, before, after)| {
            let data = if data.is_empty() { &DATA[..1] } else { data };
            let room = MAX_MESSAGE as u64 - data.len() as u64;
            let offset = before.min(room);
            PacketPart {
                flow,
                sequence,
                offset,
                total: offset + data.len() as u64 + after.min(room - offset),
                data,
            }
        })
}

fn unit() -> impl Strategy<Value = UnitData<'static>> {
    (
        flow(),
        any_varint(),
        data(2000),
        upto(1 << 20),
        upto(1 << 20),
    )
        .prop_map(|(flow, unit, data, before, after)| {
            let data = if data.is_empty() { &DATA[..1] } else { data };
            UnitData {
                flow,
                unit,
                size: before + data.len() as u64 + after,
                offset: before,
                data,
            }
        })
}

fn unit_repair() -> impl Strategy<Value = UnitRepair<'static>> {
    (
        flow(),
        any_varint(),
        data(2000),
        any::<u16>(),
        1..=MAX_SOURCES,
    )
        .prop_map(|(flow, unit, data, index, symbols)| {
            let data = if data.is_empty() { &DATA[..1] } else { data };
            let len = data.len() as u64;
            let short = len < LEAST_SYMBOL;
            let symbols = if short { symbols.min(CERTAIN) } else { symbols };
            UnitRepair {
                flow,
                unit,
                size: (symbols * len).min(MAX_UNIT),
                index,
                data,
            }
        })
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        any_varint().prop_map(Verdict::OnTime),
        any_varint().prop_map(Verdict::Late),
        Just(Verdict::GivenUp),
        any_varint().prop_map(Verdict::Refused),
        Just(Verdict::Short),
    ]
}

fn close() -> impl Strategy<Value = Close<'static>> {
    let boundaries: Vec<usize> = TEXT.char_indices().map(|(at, _)| at).collect();
    (any_varint(), prop::sample::select(boundaries)).prop_map(|(code, cut)| Close {
        code,
        reason: &TEXT[cut..],
    })
}

/// Contents of symbols of all sorts.
static CONTENTS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut contents = Vec::new();
    for len in [1_usize, 2, 70, 1400] {
        for number in [0, 63, 64, 1 << 20, varint::MAX - 1400] {
            let data = &DATA[len..2 * len];
            let (offset, total) = (number.min(9), len as u64 + 9);
            let part = Content::Part {
                sequence: number,
                offset,
                total,
                data,
            };
            let stream = |fin| Content::Stream {
                offset: number,
                fin,
                data,
            };
            let sequence = number;
            for content in [
                stream(false),
                stream(true),
                Content::Packet { sequence, data },
                part,
            ] {
                let mut out = Vec::new();
                content.encode(&mut out);
                contents.push(out);
            }
        }
    }
    contents
});

fn source_symbol() -> impl Strategy<Value = SourceSymbol<'static>> {
    (flow(), any_varint(), 0..CONTENTS.len()).prop_map(|(flow, symbol, content)| SourceSymbol {
        flow,
        symbol,
        content: &CONTENTS[content],
    })
}

fn repair_symbol() -> impl Strategy<Value = RepairSymbol<'static>> {
    (flow(), any_varint(), 1..=1024_u16, any::<u16>(), data(2000)).prop_map(
        |(flow, first, count, key, data)| RepairSymbol {
            flow,
            first: first.min(varint::MAX - u64::from(count)),
            count,
            key,
            payload: if data.len() < CODED_LENGTH {
                &DATA[..CODED_LENGTH]
            } else {
                data
            },
        },
    )
}

fn code_status() -> impl Strategy<Value = CodeStatus> {
    let equations = upto(MAX_CODE_WINDOW);
    (flow(), any_varint(), equations, any_varint(), any_varint()).prop_map(
        |(flow, next, equations, repairs, recovered)| CodeStatus {
            flow,
            next,
            equations,
            repairs,
            recovered,
        },
    )
}

/// Any frame that a peer may send.
pub(super) fn frame() -> impl Strategy<Value = Frame<'static>> {
    let stream =
        (flow(), any_varint(), any::<bool>(), data(2000)).prop_map(|(flow, offset, fin, data)| {
            Stream {
                flow,
                offset: offset.min(varint::MAX - data.len() as u64),
                fin,
                data,
            }
        });
    let packet = (flow(), any_varint(), data(2000)).prop_map(|(flow, sequence, data)| Packet {
        flow,
        sequence,
        data,
    });
    let status = prop::sample::select(&[Availability::Available, Availability::Standby][..]);
    let numbers = || (flow(), any_varint(), any_varint());
    let choices: [BoxedStrategy<Frame<'static>>; 27] = [
        (1..40_usize).prop_map(|len| Frame::Padding { len }).boxed(),
        Just(Frame::Ping).boxed(),
        ack(80).prop_map(Frame::Ack).boxed(),
        open_flow().prop_map(Frame::OpenFlow).boxed(),
        numbers()
            .prop_map(|(flow, code, final_size)| {
                Frame::ResetFlow(ResetFlow {
                    flow,
                    code,
                    final_size,
                })
            })
            .boxed(),
        numbers()
            .prop_map(|(flow, code, _)| Frame::StopSending(StopSending { flow, code }))
            .boxed(),
        stream.prop_map(Frame::Stream).boxed(),
        packet.prop_map(Frame::Packet).boxed(),
        packet_part().prop_map(Frame::PacketPart).boxed(),
        numbers()
            .prop_map(|(flow, sequence, _)| Frame::Forward(Forward { flow, sequence }))
            .boxed(),
        numbers()
            .prop_map(|(flow, sequence, _)| Frame::Finish(Finish { flow, sequence }))
            .boxed(),
        (numbers(), any_varint())
            .prop_map(|((flow, missed, late), duplicates)| {
                Frame::FlowReport(FlowReport {
                    flow,
                    missed,
                    late,
                    duplicates,
                })
            })
            .boxed(),
        unit().prop_map(Frame::Unit).boxed(),
        unit_repair().prop_map(Frame::UnitRepair).boxed(),
        (flow(), any_varint(), verdict())
            .prop_map(|(flow, unit, verdict)| {
                Frame::UnitFate(UnitFate {
                    flow,
                    unit,
                    verdict,
                })
            })
            .boxed(),
        (
            flow(),
            any_varint(),
            upto(MAX_UNIT),
            prop::option::of(upto(varint::MAX - 1)),
        )
            .prop_map(|(flow, unit, size, code)| {
                Frame::UnitCancel(UnitCancel {
                    flow,
                    unit,
                    size,
                    code,
                })
            })
            .boxed(),
        any_varint()
            .prop_map(|max| Frame::MaxData(MaxData { max }))
            .boxed(),
        numbers()
            .prop_map(|(flow, max, _)| Frame::MaxFlowData(MaxFlowData { flow, max }))
            .boxed(),
        upto(MAX_FLOW_COUNT)
            .prop_map(|max| Frame::MaxFlows(MaxFlows { max }))
            .boxed(),
        (path(), any_varint(), status)
            .prop_map(|(path, sequence, status)| {
                Frame::PathStatus(PathStatus {
                    path,
                    sequence,
                    status,
                })
            })
            .boxed(),
        (path(), any_varint())
            .prop_map(|(path, code)| Frame::PathAbandon(PathAbandon { path, code }))
            .boxed(),
        (path(), any_varint(), upto(MAX_COST))
            .prop_map(|(path, sequence, cost)| {
                Frame::PathCost(PathCost {
                    path,
                    sequence,
                    cost,
                })
            })
            .boxed(),
        (path(), any_varint(), upto(MAX_QUIET_MS))
            .prop_map(|(path, sequence, quiet_ms)| {
                Frame::PathQuiet(PathQuiet {
                    path,
                    sequence,
                    quiet_ms,
                })
            })
            .boxed(),
        close().prop_map(Frame::Close).boxed(),
        source_symbol().prop_map(Frame::Symbol).boxed(),
        repair_symbol().prop_map(Frame::Repair).boxed(),
        code_status().prop_map(Frame::CodeStatus).boxed(),
    ];
    let choices: Vec<_> = choices.into_iter().map(|choice| (1, choice)).collect();
    Box::new(prop::strategy::Union::new_weighted(choices))
}

pub(super) fn params() -> impl Strategy<Value = Params> {
    (
        any_varint(),
        any_varint(),
        any_varint(),
        upto(MAX_FLOW_COUNT),
        upto(MAX_ACK_DELAY_US),
        upto(MAX_MESSAGE as u64),
        upto(MAX_CODE_WINDOW),
        upto(MAX_CODE_SYMBOL),
        upto(MAX_FLOW_COUNT),
        upto(MAX_UNITS),
        upto(MAX_REPAIRS),
        (any_varint(), upto(MAX_COST), upto(MAX_QUIET_MS)),
    )
        .prop_map(
            |(
                max_idle_timeout_ms,
                max_data,
                max_flow_data,
                max_flows,
                max_ack_delay_us,
                max_message,
                code_window,
                code_symbol,
                code_flows,
                max_units,
                max_repairs,
                (max_unit_data, max_path_cost, max_path_quiet_ms),
            )| Params {
                max_idle_timeout_ms,
                max_data,
                max_flow_data,
                max_flows,
                max_ack_delay_us,
                max_message,
                code_window,
                code_symbol,
                code_flows,
                max_units,
                max_repairs,
                max_unit_data,
                max_path_cost,
                max_path_quiet_ms,
            },
        )
}
