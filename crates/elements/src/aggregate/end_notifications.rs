//! Aggregates that are over: what `AggregateIPFlows` tells those who keep things by aggregate.

use castanet_engine::prelude::*;
use std::collections::BTreeMap;

/// The aggregates that have ended, for each element that listens.
#[derive(Default)]
pub(crate) struct Ended {
    /// By the listener's name.
    listeners: BTreeMap<String, Listener>,
}

/// What an element of that name has not fetched yet, in whichever configuration it is.
#[derive(Default)]
struct Listener {
    over: Vec<u32>,
    /// How many elements of the name there are: two while one configuration is about to
    /// replace another.
    elements: usize,
}

/// How many aggregates a listener may leave unasked for.
const MOST: usize = 1 << 20;

impl Ended {
    /// Listens for the aggregates of the element `name` that end.
    pub(crate) fn listen(name: &str, setup: &Setup) -> Result<Ears, ArgError> {
        let ended: Link<Ended> = setup.linked(name, "AggregateIPFlows").map_err(|e| {
            e.reworded(format!("{name} is not an AggregateNotifier")).at("NOTIFIER")
        })?;
        let listener = setup.name.to_owned();
        ended.with(|ended| {
            ended.listeners.entry(listener.clone()).or_default().elements += 1;
        });
        Ok(Ears { ended, listener })
    }

    /// Tells all who listen. What a listener has not asked for when there is more than it may
    /// keep is forgotten: its own limit then ends these aggregates.
    pub(crate) fn tell(&mut self, over: &[u32]) {
        for listener in self.listeners.values_mut() {
            if listener.over.len() >= MOST {
                listener.over.clear();
            }
            listener.over.extend(over);
        }
    }
}

/// A listener's end, until it is dropped.
pub(crate) struct Ears {
    ended: Link<Ended>,
    listener: String,
}

impl Ears {
    /// The aggregates that have ended since an element of this name asked last.
    pub(crate) fn over(&self) -> Vec<u32> {
        let over = |ended: &mut Ended| {
            let listener = ended.listeners.get_mut(&self.listener);
            listener.map(|it| std::mem::take(&mut it.over)).unwrap_or_default()
        };
        self.ended.with(over)
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.ended.with(|ended| {
            let Some(listener) = ended.listeners.get_mut(&self.listener) else { return };
            listener.elements -= 1;
            if listener.elements == 0 {
                ended.listeners.remove(&self.listener);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_is_told_nothing_and_a_successor_hears_the_rest() {
        let ended = Link::<Ended>::default();
        let listen = || {
            ended.with(|it| it.listeners.entry("a".into()).or_default().elements += 1);
            Ears { ended: ended.clone(), listener: "a".into() }
        };
        let old = listen();
        ended.with(|it| it.tell(&[1, 2]));
        let new = listen();
        drop(old);
        ended.with(|it| it.tell(&[3]));
        assert_eq!(new.over(), [1, 2, 3]);
        assert!(new.over().is_empty());
        drop(new);
        ended.with(|it| {
            it.tell(&[4]);
            assert!(it.listeners.is_empty());
        });
    }
}
