//! Places for what is on its way.

/// Slots that are used again when they are free, so that memory follows the most that was ever on
/// its way at once.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    /// Takes something in and says where it is.
    pub(crate) fn insert(&mut self, thing: T) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(thing);
                slot
            }
            None => {
                self.slots.push(Some(thing));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// What is in a slot, unless it was lost on its way. Its arrival is the slot's last use.
    pub(crate) fn land(&mut self, slot: u32) -> Option<T> {
        self.free.push(slot);
        self.slots[slot as usize].take()
    }

    /// Loses everything for which `lost` holds; slots stay taken until it would have landed.
    pub(crate) fn lose(&mut self, lost: impl Fn(&T) -> bool) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(&lost) {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_only_once_at_a_time() {
        let mut slots = Slots::default();
        let (a, b) = (slots.insert('a'), slots.insert('b'));
        slots.lose(|c| *c == 'a');
        let c = slots.insert('c');
        assert!(
            c != a && c != b,
            "the slot of what was lost is taken until it would have landed"
        );
        assert_eq!((slots.land(a), slots.land(b)), (None, Some('b')));
        let again = [slots.insert('d'), slots.insert('e')];
        assert!(again.contains(&a) && again.contains(&b));
        assert_eq!(slots.land(c), Some('c'));
    }
}
