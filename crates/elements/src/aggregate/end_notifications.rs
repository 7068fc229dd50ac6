//! Notifications of `AggregateIPFlows` to its subscribers that aggregates have ended.

use castanet_element::prelude::*;
use std::collections::BTreeMap;

/// The aggregates that have ended, queued for each subscriber.
#[derive(Default)]
pub(crate) struct EndNotifier {
    /// By the name of the subscribing element.
    subscribers: BTreeMap<String, EndQueue>,
}

/// The ended aggregates that the subscriber of a name has not taken yet. Elements of the same
/// name in the old and the new configuration share the queue.
#[derive(Default)]
struct EndQueue {
    ended: Vec<u32>,
    /// The number of elements of the name: two while one configuration replaces another.
    elements: usize,
}

/// The most aggregates in the queue of a subscriber.
const MAX_QUEUED: usize = 1 << 20;

impl EndNotifier {
    /// Subscribes to the ends of aggregates of the `AggregateIPFlows` called `name`.
    pub(crate) fn subscribe(name: &str, setup: &Setup) -> Result<EndSubscription, ArgError> {
        let notifier: Shared<EndNotifier> =
            setup.shared_of(name, "AggregateIPFlows").map_err(|e| {
                e.reworded(format!("{name} is not an AggregateNotifier")).at("NOTIFIER")
            })?;
        let subscriber = setup.name.to_owned();
        notifier.with(|notifier| {
            notifier.subscribers.entry(subscriber.clone()).or_default().elements += 1;
        });
        Ok(EndSubscription { notifier, subscriber })
    }

    /// Queues the numbers of ended aggregates for all subscribers. A queue that is full is cleared
    /// first; the subscriber's own capacity then ends those aggregates.
    pub(crate) fn notify(&mut self, numbers: &[u32]) {
        for queue in self.subscribers.values_mut() {
            if queue.ended.len() >= MAX_QUEUED {
                queue.ended.clear();
            }
            queue.ended.extend(numbers);
        }
    }
}

/// The subscription of an element, which ends when it is dropped.
pub(crate) struct EndSubscription {
    notifier: Shared<EndNotifier>,
    subscriber: String,
}

impl EndSubscription {
    /// Takes the aggregates that have ended since the last call by an element of this name.
    pub(crate) fn take_ended(&self) -> Vec<u32> {
        let take = |notifier: &mut EndNotifier| {
            let queue = notifier.subscribers.get_mut(&self.subscriber);
            queue.map(|it| std::mem::take(&mut it.ended)).unwrap_or_default()
        };
        self.notifier.with(take)
    }
}

impl Drop for EndSubscription {
    fn drop(&mut self) {
        self.notifier.with(|notifier| {
            let Some(queue) = notifier.subscribers.get_mut(&self.subscriber) else { return };
            queue.elements -= 1;
            if queue.elements == 0 {
                notifier.subscribers.remove(&self.subscriber);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_subscription_gets_nothing_and_its_successor_the_rest() {
        let notifier = Shared::<EndNotifier>::default();
        let subscribe = || {
            notifier.with(|it| it.subscribers.entry("a".into()).or_default().elements += 1);
            EndSubscription { notifier: notifier.clone(), subscriber: "a".into() }
        };
        let old = subscribe();
        notifier.with(|it| it.notify(&[1, 2]));
        let new = subscribe();
        drop(old);
        notifier.with(|it| it.notify(&[3]));
        assert_eq!(new.take_ended(), [1, 2, 3]);
        assert!(new.take_ended().is_empty());
        drop(new);
        notifier.with(|it| {
            it.notify(&[4]);
            assert!(it.subscribers.is_empty());
        });
    }
}
