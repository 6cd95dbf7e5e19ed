/// Which side of the session this is; flow ids depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Dialled.
    Client,
    /// Was dialled.
    Server,
}
