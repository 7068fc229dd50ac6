//! Aggregates that are over: what `AggregateIPFlows` tells those who keep things by aggregate.

use castanet_engine::prelude::*;

/// The aggregates that have ended, for each that wants to know.
#[derive(Default)]
pub(crate) struct Ended {
    listeners: Vec<Vec<u32>>,
}

/// How many aggregates a listener may leave unasked for.
const MOST: usize = 1 << 20;

impl Ended {
    /// Wants to know which aggregates of the element `name` end.
    pub(crate) fn listen(name: &str, setup: &Setup) -> Result<Ears, ArgError> {
        let ended: Link<Ended> = setup.linked(name, "AggregateIPFlows").map_err(|e| {
            e.reworded(format!("{name} is not an AggregateNotifier")).at("NOTIFIER")
        })?;
        let number = ended.with(|ended| {
            ended.listeners.push(Vec::new());
            ended.listeners.len() - 1
        });
        Ok(Ears { ended, number })
    }

    /// Tells all who listen. What a listener has not asked for when there is more than it may
    /// keep is forgotten: its own limit then ends these aggregates.
    pub(crate) fn tell(&mut self, over: &[u32]) {
        for listener in &mut self.listeners {
            if listener.len() >= MOST {
                listener.clear();
            }
            listener.extend(over);
        }
    }
}

/// One that wants to know.
pub(crate) struct Ears {
    ended: Link<Ended>,
    number: usize,
}

impl Ears {
    /// The aggregates that have ended since it was asked last.
    pub(crate) fn over(&self) -> Vec<u32> {
        self.ended.with(|ended| std::mem::take(&mut ended.listeners[self.number]))
    }
}
