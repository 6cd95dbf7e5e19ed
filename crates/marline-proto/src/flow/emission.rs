/// Why a piece of a flow was sent on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmissionKind {
    /// For the first time.
    Source,
    /// Again, while the first copy may still arrive.
    Copy,
    /// Again, because every earlier copy was lost or is on a suspect path.
    Retransmission,
    /// A combination of what the receiver is not known to have ([`crate::sched::Plan::repair`]).
    Repair,
}
