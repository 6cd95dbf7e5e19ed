/// What became of a unit of a flow of blocks or objects: the same at both ends, because it is the
/// receiver who decides and the sender who hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Delivered, by its deadline if it had one.
    OnTime,
    /// Whole only after its deadline; the receiver's application may have wanted it all the same.
    Late,
    /// Given up by the sender because its deadline was over.
    Lost,
    /// Given up by the sender's application, with its code.
    Cancelled(u64),
    /// Given up by the receiver's application, with its code.
    Refused(u64),
}
