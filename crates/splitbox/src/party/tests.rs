//! All parties together, against the plain function; and the views of single parties.

use super::*;
use crate::bits::{HEADER_BYTES, Ternary};
use crate::digest::HashKind;
use crate::function::{NetworkFunction, Node, Policy};
use crate::secret::Key;
use crate::setup::{BlindUse, Setup, SetupOptions};
use proptest::prelude::*;
use proptest::sample::Index;

/// Bits of the header strings of these tests.
const WIDTH: usize = 96;

/// Actions change the first half, so that matches, which test the second one, see no changes.
const HALF: usize = WIDTH / 2;

fn drop_action() -> Ternary {
    Ternary::new(Bits::ZERO, Bits::first(WIDTH))
}

/// Conditions on one or two fields of few values, so that packets match.
fn condition() -> impl Strategy<Value = Ternary> {
    let field = (0..6_usize, 1..9_usize, 0..4_u128);
    prop::collection::vec(field, 0..3).prop_map(|fields| {
        fields.into_iter().fold(Ternary::ANY, |all, (place, length, value)| {
            all.with(HALF + 8 * place, length, value)
        })
    })
}

/// A list of rules: substitutions, drops and acceptance.
fn lists() -> impl Strategy<Value = NetworkFunction> {
    let action = prop_oneof![
        Just(Ternary::ANY),
        Just(drop_action()),
        (0..32_usize, any::<u16>()).prop_map(|(at, value)| Ternary::ANY.with(at, 16, value.into())),
    ];
    let policy = (condition(), action).prop_map(|(condition, action)| Policy { condition, action });
    prop::collection::vec(policy, 0..40).prop_map(NetworkFunction::first_match)
}

/// A tree of stages one after the other: each stage is a list that changes bits of its own.
fn stages() -> impl Strategy<Value = NetworkFunction> {
    let stage = prop::collection::vec((condition(), any::<u8>()), 1..8);
    prop::collection::vec(stage, 1..5).prop_map(|stages| {
        let (mut policies, mut nodes) = (Vec::new(), Vec::new());
        let mut end = 0;
        for (number, stage) in stages.into_iter().enumerate() {
            end += stage.len();
            for (condition, value) in stage {
                let node = nodes.len();
                let action = Ternary::ANY.with(8 * number, 8, value.into());
                nodes.push(Node::Match {
                    policy: policies.len(),
                    matched: end,
                    otherwise: node + 1,
                });
                policies.push(Policy { condition, action });
            }
        }
        nodes.push(Node::Leaf);
        NetworkFunction::new(policies, nodes).expect("stages do not overlap")
    })
}

/// A header string of few values.
fn header() -> impl Strategy<Value = Bits> {
    let byte = prop_oneof![Just(0_u8), Just(1 << 6), any::<u8>()];
    prop::collection::vec(byte, WIDTH / 8).prop_map(|bytes| {
        let mut header = [0; HEADER_BYTES];
        header[..WIDTH / 8].copy_from_slice(&bytes);
        Bits(header)
    })
}

fn options(processors: usize, hash: HashKind) -> SetupOptions {
    SetupOptions {
        processors,
        hash,
        header_bits: WIDTH,
        blinds: 7,
        blind_use: BlindUse::Again,
        lanes: 1,
        has_constant_work: false,
    }
}

/// Results of all parties for packets, by both traversals.
fn private_results(setup: &Setup, epoch: u64, headers: &[Bits]) -> Vec<[Bits; 2]> {
    let mut processors = setup.processors(&setup.rows(epoch).expect("memory").into());
    let (mut entry, mut client) = (setup.entry(epoch), setup.client(epoch));
    let results = headers.iter().map(|&header| {
        let packet = entry.split(header).expect("has a blind");
        let by_projection: Vec<_> = processors.iter_mut().map(|it| it.process(&packet)).collect();
        let each: Vec<_> = processors.iter().map(|it| it.process_each_match(&packet)).collect();
        [by_projection, each].map(|shares| client.merge(&packet, &shares).expect("all shares"))
    });
    results.collect()
}

proptest! {
    #[test]
    fn the_private_function_equals_the_plain_one(
        function in prop_oneof![lists(), stages()],
        headers in prop::collection::vec(header(), 1..40),
        processors in prop::sample::select(vec![2, 3, 5]),
        is_sha1: bool,
        epoch: u64,
    ) {
        let hash = if is_sha1 { HashKind::Sha1 } else { HashKind::Blake3 };
        let setup = Setup::new(&function, options(processors, hash)).expect("is possible");
        for (&header, results) in headers.iter().zip(private_results(&setup, epoch, &headers)) {
            let plain = function.evaluate(header);
            prop_assert_eq!(results, [plain, plain]);
        }
    }

    #[test]
    fn a_client_without_all_shares_has_no_result(
        function in stages(),
        packet in header(),
        absent: Index,
    ) {
        let setup = Setup::new(&function, options(3, HashKind::Blake3)).expect("is possible");
        let mut processors = setup.processors(&setup.rows(0).expect("memory").into());
        let (mut entry, mut client) = (setup.entry(0), setup.client(0));
        let packet = entry.split(packet).expect("has a blind");
        let mut shares: Vec<_> = processors.iter_mut().map(|it| it.process(&packet)).collect();
        shares.remove(absent.index(3));
        prop_assert_eq!(client.merge(&packet, &shares), None);
    }
}

#[test]
fn one_million_packets_through_a_firewall() {
    // Fewer in a build with checks, where a packet takes some microseconds.
    let count = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };
    let rule = |n: u128| Policy {
        condition: Ternary::ANY.with(HALF, 8 + (n % 4) as usize * 8, n),
        action: if n.is_multiple_of(3) { drop_action() } else { Ternary::ANY },
    };
    let function = NetworkFunction::first_match((0..60).map(rule).collect());
    for processors in [2, 3, 5] {
        let setup =
            Setup::new(&function, options(processors, HashKind::Blake3)).expect("is possible");
        let mut parties = setup.processors(&setup.rows(1).expect("memory").into());
        let (mut entry, mut client) = (setup.entry(1), setup.client(1));
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let (mut dropped, mut shares) = (0, Vec::new());
        for _ in 0..count {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut header = Bits::ZERO;
            header.put(HALF, 8 + (state >> 60) as usize % 4 * 8, u128::from(state >> 40 & 0x3f));
            header.put(0, 32, u128::from(state >> 8));
            let packet = entry.split(header).expect("has a blind");
            shares.clear();
            shares.extend(parties.iter_mut().map(|it| it.process(&packet)));
            let result = client.merge(&packet, &shares).expect("all shares");
            assert_eq!(result, function.evaluate(header));
            dropped += usize::from(result.is_zero());
        }
        assert!(dropped > count / 20 && dropped < count * 9 / 10, "{dropped} of {count}");
    }
}

#[test]
fn the_view_of_the_entry_does_not_depend_on_the_policy() {
    // With the same keys, the entry of any policy makes the same packets.
    let policy =
        |value| Policy { condition: Ternary::ANY.with(HALF, 8, value), action: drop_action() };
    let setups = [1, 2].map(|value| {
        let function = NetworkFunction::first_match(vec![policy(value)]);
        Setup::new(&function, options(2, HashKind::Blake3)).expect("is possible")
    });
    let views = setups.each_ref().map(|setup| {
        let key = Key::from_bytes([5; 32]);
        let mut entry = Entry { stream: BlindStream::new(&key, 9), ..setup.entry(9) };
        [Bits::ZERO, Bits::first(50), Bits::first(51)]
            .map(|header| entry.split(header).expect("has a blind"))
    });
    assert_eq!(views[0], views[1]);
}

#[test]
fn setups_that_cannot_be_private_or_exact_are_refused() {
    let policy = Policy { condition: Ternary::ANY.with(90, 8, 1), action: Ternary::ANY };
    let function = NetworkFunction::first_match(vec![policy]);
    let message = |options| Setup::new(&function, options).map(|_| ()).unwrap_err().to_string();
    let right = SetupOptions { header_bits: 104, ..options(2, HashKind::Blake3) };
    assert!(Setup::new(&function, right).is_ok());
    for (changed, expected) in [
        (
            SetupOptions { processors: 1, ..right },
            "1 processors: at least 2 are needed, as the only share of an action would be the action itself",
        ),
        (SetupOptions { processors: 65, ..right }, "65 processors: at most 64 are possible"),
        (
            SetupOptions { blinds: 1, lanes: 2, ..right },
            "1 blinds: an epoch has at least one for each lane, and at most 2147483648",
        ),
        (SetupOptions { lanes: 0, ..right }, "0 lanes: there are 1 to 64"),
        (
            SetupOptions { header_bits: 98, ..right },
            "98 bits of a header string: n is a multiple of 8, at most 512",
        ),
        (
            SetupOptions { header_bits: WIDTH, ..right },
            "policy 1 is about bits behind the first 96",
        ),
    ] {
        assert_eq!(message(changed), expected);
    }
}

/// The view of a processor: how often each of its bits was set.
fn ones_in_view(setup: &Setup, packets: u64) -> Vec<u64> {
    let (rows, mut entry) = (setup.rows(3).expect("memory"), setup.entry(3));
    let mut ones = Vec::new();
    for number in 0..packets {
        let mut header = Bits::ZERO;
        header.put(0, 64, u128::from(number % 5 * 0x0101_0101_0101));
        let packet = entry.split(header).expect("has a blind");
        let mut view = packet.header.0[..WIDTH / 8].to_vec();
        rows.row(packet.counter % rows.blinds()).iter().for_each(|it| view.extend(it.0));
        ones.resize(8 * view.len(), 0);
        for (at, count) in ones.iter_mut().enumerate() {
            *count += u64::from(view[at / 8] >> (at % 8) & 1);
        }
    }
    ones
}

/// Two policies with the same projections, and traffic that neither matches: what a processor sees
/// of both has the same distribution, as far as counts of each bit tell. The bound is six standard
/// deviations of the difference of two counts of fair coins: one of 300 bits exceeds it in less
/// than one run of a million, and a bit whose probability differs by 0.12 is found in all but
/// one run of a million. A blind that is used again is found.
#[test]
fn what_processors_see_does_not_tell_policies_apart() {
    const PACKETS: u64 = 8192;
    let bound = 6.0 * (PACKETS as f64 / 2.0).sqrt();
    let differs = |blinds| {
        let views = [[0xdead, 0xbeef], [0x1234, 0xffff]].map(|values| {
            let policy = |value| Policy {
                condition: Ternary::ANY.with(HALF, 16, value).with(80, 8, value & 0xff),
                action: drop_action(),
            };
            let function = NetworkFunction::first_match(values.map(policy).to_vec());
            let options = SetupOptions { blinds, ..options(2, HashKind::Blake3) };
            let setup = Setup::new(&function, options).expect("is possible");
            ones_in_view(&setup, PACKETS)
        });
        let [some, others] = &views;
        some.iter().zip(others).any(|(&a, &b)| a.abs_diff(b) as f64 > bound)
    };
    assert!(!differs(PACKETS), "each blind is used once");
    assert!(differs(1), "one blind is used for all packets");
}
