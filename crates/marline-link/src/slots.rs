use marline_base::Rng;

/// A process that is drawn again for every numbered slot.
///
/// Every slot has a generator of its own, so that a value depends on nothing but the slot, and
/// idle hours cost nothing.
#[derive(Clone, Debug)]
pub(crate) struct PerSlot<T> {
    seed: u64,
    /// The last slot asked for, and its value.
    drawn: Option<(u64, T)>,
}

impl<T: Copy> PerSlot<T> {
    pub(crate) const fn new(mut rng: Rng) -> Self {
        Self {
            seed: rng.next_u64(),
            drawn: None,
        }
    }

    /// The value of `slot`, drawn by `draw` unless it is the last one that was asked for.
    pub(crate) fn get(&mut self, slot: u64, draw: impl FnOnce(&mut Rng) -> T) -> T {
        if let Some((drawn, value)) = self.drawn
            && drawn == slot
        {
            return value;
        }
        // An odd factor other than the one inside the seeding keeps the slots' states apart.
        let mut rng = Rng::new(self.seed ^ slot.wrapping_mul(0xd134_2543_de82_ef95));
        let value = draw(&mut rng);
        self.drawn = Some((slot, value));
        value
    }
}
