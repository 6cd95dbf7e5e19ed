//! Objects put back into the order in which they were cut.

use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// What a piece costs besides its bytes, so that many small ones are bounded, too.
const PIECE: usize = 256;

/// Pieces of objects that came, and whose turn it is.
#[derive(Debug)]
pub struct Order {
    /// Most bytes that may wait for an earlier object.
    limit: usize,
    waiting: usize,
    /// The object whose turn it is.
    next: u64,
    objects: BTreeMap<u64, Arrived>,
    over: bool,
}

#[derive(Debug, Default)]
struct Arrived {
    pieces: VecDeque<Bytes>,
    /// Some piece of it has come.
    begun: bool,
    ended: bool,
    /// Nothing of it is waited for; it costs a [`PIECE`] until its turn.
    skipped: bool,
}

impl Arrived {
    /// What it counts of the bytes that may wait.
    fn cost(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(|p| p.len() + PIECE).sum();
        pieces + usize::from(self.skipped) * PIECE
    }
}

/// Why the bytes cannot be put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Disorder {
    /// More came than may wait.
    #[error("the other end sent too much before what it sent first")]
    TooMuch,
    /// Something came after the end, or twice.
    #[error("the other end sent objects after their end")]
    Ended,
}

impl Order {
    /// At most `limit` bytes wait.
    pub fn new(limit: usize) -> Self {
        Order {
            limit,
            waiting: 0,
            next: 0,
            objects: BTreeMap::new(),
            over: false,
        }
    }

    /// Takes the next piece of an object; `last`: the object ends with it. The empty object is the
    /// end of all.
    ///
    /// # Errors
    /// When it breaks the rules; the order is of no use then.
    pub fn push(&mut self, number: u64, data: Bytes, last: bool) -> Result<(), Disorder> {
        if self.over || number < self.next {
            return Err(Disorder::Ended);
        }
        let object = self.objects.entry(number).or_default();
        if object.ended {
            return Err(Disorder::Ended);
        }
        // Only an object that is empty from its beginning is the end; others may end with nothing.
        let is_end = last && data.is_empty() && !object.begun;
        (object.begun, object.ended) = (true, last);
        if !data.is_empty() || is_end {
            self.waiting += data.len() + PIECE;
            object.pieces.push_back(data);
        }
        self.check()
    }

    /// Bytes that wait for their turn, with what each piece costs besides.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Is there nothing of any object?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Does no more wait than may?
    ///
    /// # Errors
    /// [`Disorder::TooMuch`] if more does. Who does not give up then has to [`pass`](Self::pass)
    /// over what is waited for.
    pub fn check(&self) -> Result<(), Disorder> {
        match self.waiting > self.limit {
            true => Err(Disorder::TooMuch),
            false => Ok(()),
        }
    }

    /// Goes on without an object, or without the rest of it: what waits of it is forgotten, what
    /// still comes of it is refused by [`push`](Self::push).
    pub fn skip(&mut self, number: u64) {
        if number < self.next {
            return;
        }
        let object = self.objects.entry(number).or_default();
        self.waiting -= object.cost();
        *object = Arrived {
            pieces: VecDeque::new(),
            begun: true,
            ended: true,
            skipped: true,
        };
        self.waiting += object.cost();
    }

    /// Goes on without what is waited for: the object whose turn it is, or all before the first of
    /// which something is known. Returns the numbers of those that were passed over, which may be
    /// any number of them.
    pub fn pass(&mut self) -> Range<u64> {
        let from = self.next;
        if self.objects.contains_key(&from) {
            self.skip(from);
            return from..from + 1;
        }
        if let Some((&first, _)) = self.objects.first_key_value() {
            self.next = first;
        }
        from..self.next
    }

    /// The object whose turn it is; after [`pop`](Self::pop) the one that the bytes were of.
    pub fn turn(&self) -> u64 {
        self.next
    }

    /// The next bytes in order, if they are there; never empty.
    pub fn pop(&mut self) -> Option<Bytes> {
        loop {
            let object = self.objects.get_mut(&self.next)?;
            match object.pieces.pop_front() {
                Some(data) => {
                    self.waiting -= data.len() + PIECE;
                    if !data.is_empty() {
                        return Some(data);
                    }
                    self.over = true;
                    return None;
                }
                None if object.ended => {
                    self.waiting -= object.cost();
                    self.objects.remove(&self.next);
                    self.next += 1;
                }
                None => return None,
            }
        }
    }

    /// The end has come, and everything before it was taken.
    pub fn is_over(&self) -> bool {
        self.over
    }
}
