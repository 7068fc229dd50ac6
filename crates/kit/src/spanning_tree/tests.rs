//! Networks of bridges: whatever their links, they agree on one tree and never forward in a circle.

use super::*;
use proptest::prelude::*;

/// A bridge's port.
type End = (usize, usize);

/// Bridges, and links between their ports.
struct Network {
    bridges: Vec<SpanningTree>,
    links: Vec<(End, End)>,
    now: u64,
}

impl Network {
    /// Bridges with these identifiers, and these links between bridges.
    fn new(ids: &[u64], pairs: &[(usize, usize)]) -> Network {
        let mut ports = vec![0; ids.len()];
        let mut next = |bridge: usize| {
            ports[bridge] += 1;
            (bridge, ports[bridge] - 1)
        };
        let links: Vec<_> = pairs.iter().map(|&(a, b)| (next(a), next(b))).collect();
        let bridges =
            ids.iter().zip(&ports).map(|(&id, &ports)| SpanningTree::new(id, ports, 0)).collect();
        Network { bridges, links, now: 0 }
    }

    /// Lets two seconds pass: each bridge sends its messages, and no frame goes in a circle.
    fn step(&mut self) {
        self.now += 2 * SECOND;
        for bridge in 0..self.bridges.len() {
            for (port, message) in self.bridges[bridge].hello(self.now) {
                for (to, port) in self.others((bridge, port)) {
                    // As the other bridge gets it.
                    let frame = message.frame(castanet_wire::MacAddr([2, 0, 0, 0, 0, 1]));
                    let message = Bpdu::parse(&frame).unwrap();
                    self.bridges[to].receive(port, &message, self.now);
                }
            }
            assert!(self.is_forest(), "a circle after {} s", self.now / SECOND);
        }
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds / 2).for_each(|_| self.step());
    }

    fn others(&self, end: End) -> Vec<End> {
        let other = |&(a, b): &(End, End)| match end {
            _ if a == end => Some(b),
            _ if b == end => Some(a),
            _ => None,
        };
        self.links.iter().filter_map(other).collect()
    }

    fn state(&self, (bridge, port): End) -> PortState {
        self.bridges[bridge].ports[port].state
    }

    /// The pieces into which links join the bridges whose both ends `passes` accepts, and whether one
    /// of these links is in a circle.
    fn pieces(&self, passes: impl Fn(PortState) -> bool) -> (usize, bool) {
        let mut piece: Vec<usize> = (0..self.bridges.len()).collect();
        let mut circle = false;
        for &(a, b) in &self.links {
            if passes(self.state(a)) && passes(self.state(b)) {
                let (from, to) = (piece[a.0], piece[b.0]);
                circle |= from == to;
                piece.iter_mut().filter(|it| **it == from).for_each(|it| *it = to);
            }
        }
        piece.sort_unstable();
        piece.dedup();
        (piece.len(), circle)
    }

    fn is_forest(&self) -> bool {
        !self.pieces(|state| state == PortState::Forwarding).1
    }

    fn is_tree(&self) -> bool {
        let all = self.pieces(|_| true).0;
        self.pieces(|state| state == PortState::Forwarding) == (all, false)
    }
}

const IDS: [u64; 3] = [0x8000_0000_0000_0001, 0x8000_0000_0000_0002, 0x8000_0000_0000_0003];

#[test]
fn a_triangle_blocks_one_port_and_opens_it_when_a_link_fails() {
    let mut network = Network::new(&IDS, &[(0, 1), (1, 2), (2, 0)]);
    let all =
        |network: &Network, state| network.links.iter().all(|link| network.state(link.0) == state);
    assert!(all(&network, PortState::Listening));
    network.run(14);
    assert_ne!(network.state((0, 0)), PortState::Learning);
    network.run(4);
    assert_eq!(network.state((0, 0)), PortState::Learning);
    network.run(20);
    assert!(network.is_tree());
    // Bridges 1 and 2 reach the root directly; the greater one blocks the link between them.
    assert_eq!(network.state((2, 0)), PortState::Blocking);
    assert_eq!(network.state((1, 1)), PortState::Forwarding);
    assert!(network.bridges[2].listing(network.now).contains(" 8000000000000002:0001: "));
    network.run(60);
    assert_eq!(network.bridges[2].ageing_time(network.now), None);
    // The link between 2 and 0 fails.
    network.links.pop();
    network.run(80);
    assert_eq!(network.state((2, 0)), PortState::Forwarding);
    network.links.push(((2, 1), (0, 1)));
    network.run(60);
    assert!(network.is_tree());
}

#[test]
fn a_change_is_told_to_the_root_which_tells_all() {
    let mut network = Network::new(&IDS, &[(0, 1), (1, 2)]);
    network.run(120);
    let changes = |network: &Network| {
        let now = network.now;
        network.bridges.iter().map(|it| it.ageing_time(now).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(changes(&network), [false; 3]);
    let now = network.now;
    network.bridges[2].note_change(now);
    network.run(8);
    assert_eq!(changes(&network), [true; 3]);
    assert_eq!(network.bridges[2].ageing_time(network.now), Some(15 * SECOND));
    // The root has acknowledged it: nobody notifies any more.
    assert!(!network.bridges.iter().any(|it| it.notifies));
    network.run(60);
    assert_eq!(changes(&network), [false; 3]);
}

#[test]
fn a_message_expires_and_the_next_best_bridge_becomes_the_root() {
    let mut network = Network::new(&IDS, &[(0, 1), (1, 2)]);
    network.run(60);
    assert_eq!(network.bridges[2].best(), Path { root: IDS[0], cost: 2, bridge: IDS[2], port: 0 });
    network.links.remove(0);
    network.run(60);
    assert_eq!(network.bridges[2].best(), Path { root: IDS[1], cost: 1, bridge: IDS[2], port: 0 });
    assert_eq!(network.bridges[1].best().cost, 0);
}

#[test]
fn times_of_a_message_are_bounded() {
    let mut tree = SpanningTree::new(9, 1, 0);
    let mut message = ConfigurationBpdu::default();
    tree.receive(0, &Bpdu::Configuration(message), SECOND);
    assert_eq!((tree.hello_time(), tree.times().forward_delay), (SECOND, 4 * SECOND));
    message.set_hello_time(u16::MAX);
    message.set_message_age(u16::MAX);
    message.set_max_age(u16::MAX);
    // It is too old to be heard.
    tree.receive(0, &Bpdu::Configuration(message), 300 * SECOND);
    assert_eq!(tree.hello_time(), SECOND);
}

proptest! {
    #[test]
    fn any_network_becomes_a_tree(
        pairs in proptest::collection::vec((0_usize..6, 0_usize..6), 1..14),
        ids in Just([3_u64, 1, 4, 15, 9, 2]).prop_shuffle(),
        broken in any::<prop::sample::Index>(),
    ) {
        let pairs: Vec<_> = pairs.into_iter().filter(|(a, b)| a != b).collect();
        let mut network = Network::new(&ids, &pairs);
        network.run(80);
        prop_assert!(network.is_tree());
        if !network.links.is_empty() {
            network.links.remove(broken.index(network.links.len()));
            network.run(160);
            prop_assert!(network.is_tree());
        }
    }
}
