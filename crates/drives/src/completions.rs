//! Completions that a model knows before they are due.

use crate::{Completion, Nanos};

/// Completions not yet handed out.
#[derive(Debug, Clone)]
pub(crate) struct Completions {
    /// The completions by instant, latest first: the next one is taken from the end without moving
    /// the others.
    waiting: Vec<Completion>,
}

impl Completions {
    /// An empty list, with room for so many before anything is allocated again.
    pub(crate) fn with_capacity(room: usize) -> Self {
        Self {
            waiting: Vec::with_capacity(room),
        }
    }

    /// Adds the completion of a request.
    pub(crate) fn add(&mut self, id: u64, at: Nanos) {
        // Behind those of a later instant and before all of the same: of two that complete together,
        // the one that was added first is handed out first.
        let place = self.waiting.partition_point(|other| other.at > at);
        self.waiting.insert(place, Completion { id, at });
    }

    /// The instant of the next one; `None` if there is none.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.waiting.last().map(|next| next.at)
    }

    /// Takes the next one, if it is due at `now`.
    pub(crate) fn take_due(&mut self, now: Nanos) -> Option<Completion> {
        self.waiting.pop_if(|next| next.at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_come_in_the_order_of_their_instants_and_not_before() {
        let mut completions = Completions::with_capacity(4);
        for (id, at) in [(1, 30), (2, 10), (3, 30), (4, 20)] {
            completions.add(id, at);
        }
        assert_eq!(completions.next(), Some(10));
        assert_eq!(completions.take_due(9), None);
        let taken: Vec<u64> = std::iter::from_fn(|| completions.take_due(30))
            .map(|completion| completion.id)
            .collect();
        assert_eq!(taken, [2, 4, 1, 3]);
        assert_eq!(completions.next(), None);
    }
}
