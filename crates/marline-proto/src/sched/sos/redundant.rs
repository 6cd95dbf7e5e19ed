use super::{Lane, Split, joint, split};

/// The split of an object of `n` packets that is decoded from any n of those sent: what SOS-FEC
/// sends on each lane, n_i + δ_i (8, 9), with the bound of the split without redundancy.
///
/// Lane i gets what it would get if it alone were lucky: its spread `gamma` (γ, 0 to 1) of what it
/// is. With γ = 1 there is no redundancy.
pub fn redundant(lanes: &[Lane], n: u32, gamma: f64) -> Split {
    let plain = split(lanes, n);
    let lanes = joint::settled(lanes, &plain.packets);
    // Of lanes with laws the plain split is better by a packet here and there than that of their
    // widths.
    let base = split(&lanes, n).packets;
    let mut lucky = lanes.clone();
    let mut packets = plain.packets.clone();
    for (i, sent) in packets.iter_mut().enumerate() {
        lucky[i] = lanes[i].with_luck(gamma.clamp(0.0, 1.0));
        // Never less: only equal bounds, distinguished by their order, could make it so.
        let more = split(&lucky, n).packets[i].saturating_sub(base[i]);
        *sent = (*sent + more).min(n);
        lucky[i] = lanes[i];
    }
    Split { packets, ..plain }
}
