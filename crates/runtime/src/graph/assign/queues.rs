//! The queues of each device by worker.

use castanet_element::device::{Device, QueueShare, Queues};
use std::collections::BTreeMap;
use std::ops::Range;

/// An element that uses a device, and the workers that run it.
pub(super) struct User<'a> {
    pub(super) device: &'a Device,
    pub(super) workers: Vec<usize>,
}

/// Gives each worker queues to poll, as evenly as possible: one each, several where there are more
/// queues than workers.
pub(super) fn to_poll<'a>(users: &[User<'a>]) -> Vec<Vec<QueueShare>> {
    let mut ends: BTreeMap<&str, usize> = BTreeMap::new();
    // Elements that name their queues come first.
    for user in users {
        if let Some(first) = user.device.queues.first {
            let end = ends.entry(&user.device.name).or_default();
            *end = (*end).max(first + count(user.device.queues, user.workers.len()));
        }
    }
    let mut share = |user: &User<'a>| {
        let (queues, workers) = (user.device.queues, user.workers.len());
        let all = count(queues, workers);
        let first = queues.first.unwrap_or_else(|| {
            let end = ends.entry(&user.device.name).or_default();
            std::mem::replace(end, *end + all)
        });
        let parts = user.workers.iter().enumerate().map(|(nth, &worker)| {
            let queues = first + nth * all / workers..first + (nth + 1) * all / workers;
            QueueShare { worker, queues, with: Vec::new() }
        });
        parts.collect()
    };
    users.iter().map(&mut share).collect()
}

/// Gives each worker a queue to send to: one of its own while there are enough, else one that it
/// shares with others. Elements of the same device that do not name their queues have the same
/// queues.
pub(super) fn to_send(users: &[User]) -> Vec<Vec<QueueShare>> {
    let mut everybody: BTreeMap<&str, (Vec<usize>, usize)> = BTreeMap::new();
    for user in users.iter().filter(|user| user.device.queues.first.is_none()) {
        let (workers, most) =
            everybody.entry(&user.device.name).or_insert((Vec::new(), usize::MAX));
        workers.extend(&user.workers);
        workers.sort_unstable();
        workers.dedup();
        *most = (*most).min(user.device.queues.most);
    }
    let queue_of = |user: &User, worker: usize| {
        let Queues { first, .. } = user.device.queues;
        let (workers, most) = match (first, everybody.get(user.device.name.as_str())) {
            (None, Some((workers, most))) => (workers, *most),
            _ => (&user.workers, user.device.queues.most),
        };
        let nth = workers.iter().position(|&w| w == worker).unwrap_or(0);
        first.unwrap_or(0) + nth % most.max(1)
    };
    let mut senders: BTreeMap<(&str, usize), Vec<usize>> = BTreeMap::new();
    for user in users {
        for &worker in &user.workers {
            senders.entry((&user.device.name, queue_of(user, worker))).or_default().push(worker);
        }
    }
    let share = |user: &User, worker: usize| {
        let queue = queue_of(user, worker);
        let mut with = senders[&(user.device.name.as_str(), queue)].clone();
        with.retain(|&other| other != worker);
        with.sort_unstable();
        with.dedup();
        QueueShare { worker, queues: one(queue), with }
    };
    users.iter().map(|it| it.workers.iter().map(|&worker| share(it, worker)).collect()).collect()
}

/// Number of queues that so many workers poll.
fn count(queues: Queues, workers: usize) -> usize {
    workers.clamp(queues.least.max(1), queues.most.max(queues.least).max(1))
}

fn one(queue: usize) -> Range<usize> {
    queue..queue + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use castanet_element::device::RxThreads;

    fn device(name: &str, first: Option<usize>, least: usize, most: usize) -> Device {
        let queues = Queues { first, least, most, sockets: false };
        Device {
            name: name.into(),
            how: String::new(),
            node: None,
            queues,
            rx_threads: RxThreads::default(),
        }
    }

    type PlainShare = (usize, Range<usize>, Vec<usize>);

    /// Worker, queues and the others on them, by element.
    fn plain_shares(shares: Vec<Vec<QueueShare>>) -> Vec<Vec<PlainShare>> {
        let plain = |share: QueueShare| (share.worker, share.queues, share.with);
        shares.into_iter().map(|all| all.into_iter().map(plain).collect()).collect()
    }

    #[test]
    fn every_queue_is_polled_by_one_worker() {
        let four = device("a", Some(0), 4, 4);
        for (workers, want) in [
            (vec![0], vec![(0, 0..4, vec![])]),
            (vec![0, 1], vec![(0, 0..2, vec![]), (1, 2..4, vec![])]),
            (vec![1, 2, 3], vec![(1, 0..1, vec![]), (2, 1..2, vec![]), (3, 2..4, vec![])]),
        ] {
            assert_eq!(plain_shares(to_poll(&[User { device: &four, workers }])), [want]);
        }
        let as_many = device("a", None, 1, 64);
        let user = User { device: &as_many, workers: vec![4, 5] };
        assert_eq!(plain_shares(to_poll(&[user])), [[(4, 0..1, vec![]), (5, 1..2, vec![])]]);
    }

    #[test]
    fn elements_of_one_device_get_queues_of_their_own() {
        let (any, third) = (device("a", None, 1, 64), device("a", Some(2), 1, 1));
        let other = device("b", None, 1, 64);
        let users = [(&any, vec![0]), (&third, vec![1]), (&any, vec![0, 1]), (&other, vec![0])];
        let users = users.map(|(device, workers)| User { device, workers });
        let first =
            |shares: Vec<QueueShare>| shares.iter().map(|it| it.queues.start).collect::<Vec<_>>();
        let queues: Vec<Vec<usize>> = to_poll(&users).into_iter().map(first).collect();
        assert_eq!(queues, [vec![3], vec![2], vec![4, 5], vec![0]]);
    }

    #[test]
    fn queues_to_send_to_are_shared_only_where_there_are_too_few() {
        let (enough, two) = (device("a", None, 1, 4), device("b", None, 1, 2));
        let of = |device, workers| plain_shares(to_send(&[User { device, workers }])).remove(0);
        assert_eq!(of(&enough, vec![1, 3]), [(1, 0..1, vec![]), (3, 1..2, vec![])]);
        let want = [(0, 0..1, vec![2]), (1, 1..2, vec![]), (2, 0..1, vec![0])];
        assert_eq!(of(&two, vec![0, 1, 2]), want);
    }

    #[test]
    fn a_worker_has_the_same_queue_in_all_elements_of_a_device() {
        let any = device("a", None, 1, 4);
        let fixed = device("a", Some(1), 1, 1);
        let users = [(&any, vec![1]), (&any, vec![0, 1]), (&fixed, vec![5])];
        let users = users.map(|(device, workers)| User { device, workers });
        // Worker 1 has queue 1 in both, and shares it with the worker that names it.
        let want = [
            vec![(1, 1..2, vec![5])],
            vec![(0, 0..1, vec![]), (1, 1..2, vec![5])],
            vec![(5, 1..2, vec![1])],
        ];
        assert_eq!(plain_shares(to_send(&users)), want);
    }
}
