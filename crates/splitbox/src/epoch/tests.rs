//! Rows that come in chunks, against rows that are made whole.

use super::*;
use crate::function::{NetworkFunction, Policy};
use crate::secret::BlindStream;
use proptest::prelude::*;
use proptest::sample::Index;

const KIND: HashKind = HashKind::Blake3;

/// The first conditions are `*`, and some over one, two or four bytes, many of them with the same
/// projection.
fn functions() -> impl Strategy<Value = (PrivateFunction, Vec<Ternary>)> {
    let condition = (0..6_usize, any::<u32>()).prop_map(|(shape, value)| match shape {
        0 => Ternary::ANY,
        1 => Ternary::ANY.with(0, 8, value.into()),
        2 => Ternary::ANY.with(8, 16, value.into()),
        _ => Ternary::ANY.with(16, 32, value.into()),
    });
    prop::collection::vec(condition, 0..120).prop_map(|conditions| {
        let policy = |condition| Policy { condition, action: Ternary::ANY };
        let policies = conditions.into_iter().map(policy).collect();
        PrivateFunction::new(&NetworkFunction::first_match(policies))
    })
}

fn keys() -> [Key; 2] {
    [1, 2].map(|byte| Key::from_bytes([byte; 32]))
}

fn found(rows: &EpochRows, blind: u64, header: Bits) -> Vec<Option<MatchId>> {
    let mut answers = [false, true].map(|is_constant| {
        let (mut searches, mut work) = (Searches::default(), Work::default());
        for (projection, hash) in rows.hashes().iter().enumerate() {
            searches.push(rows, 7, blind, projection, hash.digest(header));
        }
        let mut answers = Vec::new();
        searches.find(rows, is_constant, &mut work, |asker, projection, found| {
            assert_eq!((asker, projection as usize), (7, answers.len()));
            answers.push(found);
        });
        answers
    });
    assert_eq!(answers[0], answers[1], "constant work");
    std::mem::take(&mut answers[0])
}

proptest! {
    #[test]
    fn chunks_in_any_order_make_the_whole_rows(
        (function, matches) in functions(),
        blinds in 1..40_u64,
        order in prop::collection::vec(any::<Index>(), 0..200),
        epoch: u64,
    ) {
        let [blind_key, hash_key] = &keys();
        let secrets = EpochSecrets { blinds: blind_key, hash: hash_key };
        let whole = EpochRows::new(&function, &matches, secrets, KIND, epoch, blinds).expect("memory");
        prop_assert!(whole.is_complete());
        let mut maker = RowMaker::new(&function, &matches, secrets, KIND, epoch, blinds);
        let bytes = EpochRows::memory_bytes(&function, blinds);
        let mut rows =
            EpochRows::empty(&function, hash_key, KIND, epoch, blinds, bytes).expect("memory");
        let chunks = rows.chunks();
        prop_assert_eq!((chunks, chunks), (maker.chunks(), whole.chunks()));
        let mut insert = |rows: &mut EpochRows, chunk: u32| {
            let numbers = chunks.digests(chunk);
            let mut bytes = vec![1; (numbers.end - numbers.start) as usize * DIGEST_BYTES];
            maker.fill(numbers.start, &mut bytes);
            rows.insert(numbers.start, &bytes)
        };
        for at in order.iter().filter(|_| chunks.count() > 0) {
            prop_assert_eq!(insert(&mut rows, at.index(chunks.count() as usize) as u32), Ok(()));
        }
        for chunk in rows.missing(usize::MAX).into_iter().flatten() {
            prop_assert!(!rows.is_complete());
            prop_assert_eq!(insert(&mut rows, chunk), Ok(()));
        }
        prop_assert!(rows.is_complete());
        let mut stream = BlindStream::new(blind_key, epoch);
        for blind in 0..blinds {
            prop_assert_eq!(rows.row(blind), whole.row(blind));
            let pad = stream.blind(blind);
            for (id, it) in (0..).zip(&matches) {
                let header = it.value() ^ pad;
                let projection = function.matches()[id as usize];
                prop_assert_eq!(found(&rows, blind, header)[projection], Some(id));
                prop_assert!(rows.is_match(rows.row(blind), id, projection, header));
                let all = found(&whole, blind, header ^ Bits::first(1));
                prop_assert_eq!(&found(&rows, blind, header ^ Bits::first(1)), &all);
                for (other, found) in all.iter().enumerate() {
                    let plain = it.value() ^ Bits::first(1);
                    let of = |&id: &usize| function.matches()[id] == other;
                    let expected = (0..matches.len()).filter(of).find(|&id| matches[id].matches(plain));
                    prop_assert_eq!(*found, expected.map(|id| id as MatchId));
                }
            }
        }
    }

    #[test]
    fn any_range_of_digests_is_a_part_of_the_whole(
        (function, matches) in functions(),
        blinds in 1..40_u64,
        first: Index,
        count in 0..3000_usize,
        kind in prop::sample::select(vec![HashKind::Blake3, HashKind::Sha1]),
    ) {
        let [blind_key, hash_key] = &keys();
        let secrets = EpochSecrets { blinds: blind_key, hash: hash_key };
        let rows = EpochRows::new(&function, &matches, secrets, kind, 1, blinds).expect("memory");
        let mut maker = RowMaker::new(&function, &matches, secrets, kind, 1, blinds);
        let all: Vec<u8> = (0..blinds).flat_map(|it| rows.row(it)).flat_map(|it| it.0).collect();
        let first = first.index(all.len() / DIGEST_BYTES + 10);
        let mut part = vec![1; count * DIGEST_BYTES];
        maker.fill(first as u64, &mut part);
        let bytes = all.into_iter().skip(first * DIGEST_BYTES).chain(std::iter::repeat(0));
        prop_assert!(bytes.zip(&part).all(|(expected, &made)| expected == made));
    }
}

/// Buckets overflow: 500 matches of a projection for each of 50 blinds.
#[test]
fn digests_are_found_behind_full_buckets() {
    let policy = |n: u128| Policy { condition: Ternary::ANY.with(0, 32, n), action: Ternary::ANY };
    let function = NetworkFunction::first_match((0..500).map(policy).collect());
    let (function, matches) = PrivateFunction::new(&function);
    let [blind_key, hash_key] = &keys();
    let secrets = EpochSecrets { blinds: blind_key, hash: hash_key };
    let rows = EpochRows::new(&function, &matches, secrets, KIND, 1, 50).expect("memory");
    assert!(rows.index.reach(0) > 1, "a bucket overflows");
    let mut stream = BlindStream::new(blind_key, 1);
    for blind in 0..50 {
        let pad = stream.blind(blind);
        for (id, it) in (0..).zip(&matches) {
            assert_eq!(found(&rows, blind, it.value() ^ pad), [Some(id)]);
            assert_eq!(found(&rows, blind, it.value() ^ pad ^ Bits::first(1)), [None]);
        }
    }
}

#[test]
fn rows_above_the_limit_are_refused() {
    let policy = |n| Policy { condition: Ternary::ANY.with(0, 8, n), action: Ternary::ANY };
    let list = NetworkFunction::first_match([1, 2, 3].map(policy).to_vec());
    let (function, _) = PrivateFunction::new(&list);
    let empty = |blinds, limit| {
        let rows = EpochRows::empty(&function, &keys()[1], KIND, 1, blinds, limit);
        rows.map(|_| ()).map_err(|error| error.to_string())
    };
    let bytes = EpochRows::memory_bytes(&function, 1000);
    assert_eq!(bytes, 1000 * (3 * 16 + 64) + 8);
    assert_eq!(empty(1000, bytes), Ok(()));
    let message = format!(
        "rows of {bytes} bytes in an epoch: at most {} bytes are possible; fewer blinds or matches \
         need fewer",
        bytes - 1
    );
    assert_eq!(empty(1000, bytes - 1), Err(message));
}
