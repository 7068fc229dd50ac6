//! The parties' epochs over a network that loses datagrams, with parties that start again.

use super::*;
use crate::bits::Ternary;
use crate::datagram::{DatagramInfo, DatagramKind, Link, LinkKey, TAG_BYTES};
use crate::digest::HashKind;
use crate::function::{NetworkFunction, Policy};
use crate::replay::Freshness;
use crate::setup::{BlindUse, ClientParty, Setup, SetupOptions};
use castanet_wire::splitbox::SplitBoxHeader;
use proptest::prelude::*;
use std::sync::Arc;

const MILLISECOND: u64 = 1_000_000;

/// All parties, and a network between them.
struct Network {
    setup: Setup,
    client_party: Arc<ClientParty>,
    client: ClientEpochs,
    entry: EntryEpochs,
    processors: Vec<ProcessorEpochs>,
    /// By processor: its session and the number of its next report.
    sessions: Vec<(u64, u64)>,
    now: u64,
    /// Datagrams of a hundred that are lost.
    loss: u64,
    random: u64,
}

impl Network {
    fn new(blind_use: BlindUse, loss: u64, random: u64) -> Network {
        Network::of(7, blind_use, loss, random)
    }

    /// The parties of a function with so many policies.
    fn of(policies: u128, blind_use: BlindUse, loss: u64, random: u64) -> Network {
        let policy = |value| Policy {
            condition: Ternary::ANY.with(24, 16, value),
            action: Ternary::ANY.with(0, 8, value & 7),
        };
        let function = NetworkFunction::first_match((0..policies).map(policy).collect());
        let options = SetupOptions {
            processors: 2,
            hash: HashKind::Blake3,
            header_bits: 96,
            blinds: 64,
            blind_use,
            lanes: 1,
            has_constant_work: false,
        };
        let setup = Setup::new(&function, options).expect("is possible");
        let client_party = Arc::new(setup.client.clone());
        let now = 1_700_000_000_000 * MILLISECOND;
        Network {
            client: ClientEpochs::new(client_party.clone(), 60_000 * MILLISECOND),
            client_party,
            setup,
            entry: EntryEpochs::new(now),
            processors: (0..2).map(|_| ProcessorEpochs::default()).collect(),
            sessions: vec![(now, 0); 2],
            now,
            loss,
            random,
        }
    }

    fn is_lost(&mut self) -> bool {
        self.random =
            self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.random >> 33) % 100 < self.loss
    }

    /// One millisecond.
    fn step(&mut self) {
        self.now += MILLISECOND;
        let now = self.now;
        self.client.prepare(now);
        let mut rows = Vec::new();
        self.client.send_rows(now, 4, |row, bytes| {
            let mut datagram = vec![0; SplitBoxHeader::LEN];
            datagram.extend(bytes);
            datagram.extend([0; TAG_BYTES]);
            row.key.seal(row.chunk.into(), 0, &mut datagram).expect("is sealed");
            rows.push((row.processor, datagram));
        });
        for (processor, mut datagram) in rows {
            if !self.is_lost() {
                let info = DatagramInfo::of(&datagram).expect("is a datagram");
                let party = &self.setup.processors[processor];
                // Chunks that are sent twice are refused.
                let epochs = &mut self.processors[processor];
                if let Ok(payload) = epochs.open(party, &info, &mut datagram) {
                    _ = epochs.insert(party, &info, payload);
                }
            }
        }
        if (now / MILLISECOND).is_multiple_of(10) {
            self.report();
        }
    }

    fn report(&mut self) {
        let now = self.now;
        for processor in 0..2 {
            self.sessions[processor].1 += 1;
            if !self.is_lost() {
                let (status, session) =
                    (self.processors[processor].status(), self.sessions[processor]);
                let taken = self.client.take_status(now, processor, session, &status);
                taken.expect("is new");
            }
        }
        let (report, hello) = self.entry.report();
        if self.is_lost() {
            return;
        }
        let session = self.entry.session();
        let answer = self.client.take_hello(now, (session, report), &hello).expect("is new");
        for epoch in answer.grants {
            let all_have_rows = self
                .processors
                .iter()
                .filter(|it| it.find(epoch).is_some_and(|it| it.rows().is_some()));
            assert!(hello.newest != 0 || all_have_rows.count() == 2, "permitted with rows only");
            if !self.is_lost() {
                self.entry.grant(&self.setup.entry, epoch, answer.is_now);
            }
        }
    }

    /// Lets time pass until the entry may use an epoch behind `epoch`, and goes on with it.
    fn next_epoch(&mut self, epoch: u64) -> u64 {
        for _ in 0..3000 {
            self.step();
            if let Some(next) = self.entry.next_after(epoch) {
                return next.number;
            }
        }
        panic!("no epoch behind {epoch}\n{}", self.client.state(self.now));
    }

    /// Whether the client accepts datagrams of an epoch.
    fn is_usable(&self, epoch: u64) -> bool {
        self.client.usable().iter().any(|it| it.number == epoch)
    }

    fn has_rows(&self, processor: usize, epoch: u64) -> bool {
        self.processors[processor].find(epoch).is_some_and(|it| it.rows().is_some())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn each_party_may_start_again(is_once: bool, loss in 0..30_u64, random: u64) {
        let blind_use = if is_once { BlindUse::Once } else { BlindUse::Again };
        let mut network = Network::new(blind_use, loss, random);
        let first = network.next_epoch(0);
        prop_assert!(network.is_usable(first));
        prop_assert!(network.has_rows(0, first) && network.has_rows(1, first));

        // A processor that starts again gets the rows of the present epoch.
        network.processors[1] = ProcessorEpochs::default();
        network.sessions[1] = (network.now, 0);
        for _ in 0..3000 {
            network.step();
            if network.has_rows(1, first) {
                break;
            }
        }
        prop_assert!(network.has_rows(1, first), "{}", network.client.state(network.now));

        // An entry that starts again gets an epoch that it has not used.
        network.entry = EntryEpochs::new(network.now);
        let second = network.next_epoch(0);
        prop_assert!(second > first && network.is_usable(second));

        // A client that starts again makes new epochs, and the entry goes on with them.
        network.client = ClientEpochs::new(network.client_party.clone(), 60_000 * MILLISECOND);
        let mut third = second;
        for _ in 0..30 {
            third = network.next_epoch(third);
            if network.is_usable(third) {
                break;
            }
        }
        prop_assert!(third > second && network.is_usable(third));
        prop_assert!(network.entry.is_over(second), "older epochs are not used any more");
    }

    #[test]
    fn epochs_follow_each_other_where_blinds_are_used_once(loss in 0..30_u64, random: u64) {
        let mut network = Network::new(BlindUse::Once, loss, random);
        let mut epoch = 0;
        for _ in 0..12 {
            let next = network.next_epoch(epoch);
            prop_assert!(next > epoch && network.is_usable(next));
            prop_assert!(network.has_rows(0, next) && network.has_rows(1, next));
            epoch = next;
        }
    }
}

#[test]
fn epochs_change_in_time_and_on_demand_where_blinds_are_used_again() {
    let mut network = Network::new(BlindUse::Again, 0, 0);
    let first = network.next_epoch(0);
    (0..1000).for_each(|_| network.step());
    assert!(network.entry.next_after(first).is_none(), "an epoch lasts a minute");
    network.client.rotate();
    let second = network.next_epoch(first);
    assert!(network.entry.is_over(first) && second > first);
    network.now += 60_000 * MILLISECOND;
    assert!(network.next_epoch(second) > second);
}

/// Such as a firewall that lets all packets pass.
#[test]
fn functions_without_matches_have_epochs() {
    for loss in [0, 40] {
        let mut network = Network::of(0, BlindUse::Again, loss, 0);
        let first = network.next_epoch(0);
        assert!(network.has_rows(0, first) && network.has_rows(1, first));
        network.client.rotate();
        assert!(network.next_epoch(first) > first);
        (0..1000).for_each(|_| network.step());
        assert!(!network.client.is_sending(network.now));
    }
}

#[test]
fn rows_of_epochs_that_are_over_are_not_sent_again() {
    let mut network = Network::new(BlindUse::Again, 0, 0);
    let mut epoch = network.next_epoch(0);
    for _ in 0..MAX_EPOCHS + 1 {
        network.client.rotate();
        epoch = network.next_epoch(epoch);
    }
    // The processors have dropped the first epochs, and the client has not.
    assert!(network.client.usable().iter().any(|it| !network.has_rows(0, it.number)));
    (0..1000).for_each(|_| network.step());
    assert!(!network.client.is_sending(network.now), "{}", network.client.state(network.now));
    assert!(network.has_rows(0, epoch));
    // A processor that starts again gets the rows of the present epoch and of the next one.
    network.processors[1] = ProcessorEpochs::default();
    network.sessions[1] = (network.now, 0);
    (0..1000).for_each(|_| network.step());
    let numbers = network.processors[1].all().iter().map(|it| it.number);
    assert!(network.has_rows(1, epoch) && numbers.clone().count() == 2);
    assert!(numbers.min() == Some(epoch) && !network.client.is_sending(network.now));
    // An entry that starts again uses neither it nor older ones.
    network.entry = EntryEpochs::new(network.now);
    assert!(network.next_epoch(0) > epoch);
    let state = network.client.state(network.now);
    assert!(state.contains(&format!("epoch {epoch} over\n")), "{state}");
}

/// A client that starts again knows none of the epochs that the entry has ahead.
#[test]
fn the_entry_leaves_epochs_of_a_client_that_started_again() {
    for uses_first in [false, true] {
        let mut network = Network::new(BlindUse::Once, 0, 0);
        (0..500).for_each(|_| network.step());
        let before = if uses_first { network.next_epoch(0) } else { 0 };
        (0..500).for_each(|_| network.step());
        let newest = network.entry.newest();
        assert!(newest > before);
        network.client = ClientEpochs::new(network.client_party.clone(), 60_000 * MILLISECOND);
        (0..500).for_each(|_| network.step());
        assert!(network.entry.is_over(before), "{}", network.client.state(network.now));
        let next = network.next_epoch(before);
        assert!(next > newest && network.is_usable(next));
        // An entry without packets gets no more than it should have ahead.
        let newest = network.entry.newest();
        (0..500).for_each(|_| network.step());
        let newest_later = network.entry.newest();
        (0..500).for_each(|_| network.step());
        assert!(newest_later >= newest && network.entry.newest() == newest_later);
    }
}

/// The other parties remember which epochs there were.
#[test]
fn epochs_grow_where_the_clock_of_the_client_was_set_back() {
    for (blind_use, entry_starts) in
        [(BlindUse::Again, false), (BlindUse::Once, false), (BlindUse::Again, true)]
    {
        let mut network = Network::new(blind_use, 0, 0);
        let mut epoch = network.next_epoch(0);
        for _ in 0..MAX_EPOCHS {
            network.client.rotate();
            epoch = network.next_epoch(epoch);
        }
        (0..500).for_each(|_| network.step());
        network.client = ClientEpochs::new(network.client_party.clone(), 60_000 * MILLISECOND);
        if entry_starts {
            network.entry = EntryEpochs::new(network.now);
        }
        network.now -= 1_000_000 * MILLISECOND;
        (0..500).for_each(|_| network.step());
        let next = network.next_epoch(if entry_starts { 0 } else { epoch });
        assert!(next > epoch && network.is_usable(next));
        assert!(network.has_rows(0, next) && network.has_rows(1, next));
    }
}

#[test]
fn reports_are_taken_once_and_of_the_newest_session() {
    let mut network = Network::new(BlindUse::Again, 0, 0);
    let status = Status::default();
    let mut take = |session, report| network.client.take_status(1, 0, (session, report), &status);
    assert_eq!(take(5, 3), Ok(()));
    assert_eq!(take(5, 3), Err(Freshness::Replayed));
    // Overtaken on its way.
    assert_eq!(take(5, 2), Ok(()));
    assert_eq!(take(5, 2), Err(Freshness::Replayed));
    assert_eq!(take(4, 9), Err(Freshness::Old));
    assert_eq!(take(6, 0), Ok(()));
    assert_eq!(take(5, 4), Err(Freshness::Old));
    assert_eq!(take(6, u64::MAX), Err(Freshness::Old));
    assert_eq!(take(6, 5000), Ok(()));
    assert_eq!(take(6, 1), Err(Freshness::Old));
}

/// Else rows that have come would be sent again, and the entry be told that its epochs are not known.
#[test]
fn reports_that_are_overtaken_change_nothing() {
    let mut network = Network::new(BlindUse::Again, 0, 0);
    let epoch = network.next_epoch(0);
    let (session, later) = (network.entry.session(), network.now + 1000 * MILLISECOND);
    let client = &mut network.client;
    let used = Hello { newest: epoch, current: epoch };
    let unknown = Hello { newest: 5, current: 5 };
    for (report, hello) in [(800, used), (799, unknown)] {
        client.take_hello(later, (session, report), &hello).expect("is new");
    }
    assert!(!client.take_hello(later, (session, 798), &unknown).expect("is new").is_now);
    let has_all = network.processors[0].status();
    for (report, status) in [(800, &has_all), (799, &Status::default())] {
        assert_eq!(client.take_status(later, 0, (session, report), status), Ok(()));
    }
    let mut sent = 0;
    client.send_rows(later, 1000, |row, _| sent += usize::from(row.processor == 0));
    assert_eq!(sent, 0);
    // The same report in order does change something.
    assert_eq!(client.take_status(later, 0, (session, 801), &Status::default()), Ok(()));
    client.send_rows(later, 1000, |row, _| sent += usize::from(row.processor == 0));
    assert!(sent > 0);
}

#[test]
fn chunks_are_refused_unless_they_are_of_the_client() {
    let network = Network::new(BlindUse::Again, 0, 0);
    let party = &network.setup.processors[0];
    let link = Link { kind: DatagramKind::Rows, processor: 0 };
    let insert = |secret, setup, link, epoch, chunk, change: fn(&mut Vec<u8>)| {
        let mut epochs = ProcessorEpochs::default();
        let key = LinkKey::new(secret, setup, link, epoch).expect("is a key");
        let mut datagram = vec![0; SplitBoxHeader::LEN + 75 * 16 + TAG_BYTES];
        key.seal(chunk, 0, &mut datagram).expect("is sealed");
        change(&mut datagram);
        let info = DatagramInfo::of(&datagram).expect("is a datagram");
        let opened = epochs.open(party, &info, &mut datagram);
        let refusal = opened.and_then(|payload| epochs.insert(party, &info, payload));
        assert_eq!(epochs.all().is_empty(), refusal.is_err());
        refusal
    };
    let (secret, setup) = (&party.client_secret, party.info.id);
    let other = Link { processor: 1, ..link };
    assert_eq!(insert(secret, setup, link, 9, 0, |_| {}), Ok(false));
    assert_eq!(insert(secret, setup, link, 9, 99, |_| {}), Err(RowsRefusal::Malformed));
    assert_eq!(insert(secret, setup, other, 9, 0, |_| {}), Err(RowsRefusal::Foreign));
    assert_eq!(insert(secret, setup ^ 1, link, 9, 0, |_| {}), Err(RowsRefusal::Foreign));
    assert_eq!(insert(&party.entry_secret, setup, link, 9, 0, |_| {}), Err(RowsRefusal::Forged));
    assert_eq!(insert(secret, setup, link, 9, 0, |it| it[99] ^= 1), Err(RowsRefusal::Forged));
}
