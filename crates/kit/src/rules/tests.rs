//! Tests of tables against a linear list of rules.

use super::*;
use proptest::prelude::*;

/// The matches of a linear search.
fn linear_search(rules: &[(u32, MaskedKey)], keys: &[Key]) -> Vec<RuleMatch> {
    let hits = keys.iter().enumerate().flat_map(|(at, key)| {
        let matching =
            rules.iter().filter(move |(_, masked)| *key & *masked.mask() == *masked.value());
        matching.map(move |&(rule, _)| RuleMatch { key: at as u32, rule })
    });
    let mut hits: Vec<RuleMatch> = hits.collect();
    hits.sort();
    hits
}

fn find_sorted(table: &Table, keys: &[Key]) -> Vec<RuleMatch> {
    let mut hits = Vec::new();
    table.find_all(keys, &mut hits);
    assert!(hits.is_sorted_by_key(|hit| hit.key), "by key");
    hits.sort();
    hits
}

/// Keys with few different values, so that rules match.
fn key() -> impl Strategy<Value = Key> {
    prop::array::uniform8(prop::sample::select(vec![0, 1, 2, 0x0101, u64::MAX, 0xff << 56]))
        .prop_map(Key)
}

fn mask() -> impl Strategy<Value = Key> {
    let word = prop::sample::select(vec![0, 0, 0, 1, 0xff, u64::MAX, 0xffff << 48, u64::MAX << 32]);
    prop::array::uniform8(word).prop_map(Key)
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u32, MaskedKey),
    Remove(prop::sample::Index),
    Defer,
    Settle,
}

impl Step {
    /// Changes a table and the list of its rules.
    fn apply(self, table: &mut Table, list: &mut Vec<(u32, MaskedKey)>) {
        match self {
            Step::Insert(rule, masked) => {
                table.insert(rule, &masked);
                list.push((rule, masked));
            }
            Step::Remove(index) if !list.is_empty() => {
                let (rule, masked) = list.swap_remove(index.index(list.len()));
                assert!(table.remove(rule, &masked));
            }
            Step::Remove(_) => {}
            Step::Defer => table.defer_probes(),
            Step::Settle => table.settle(),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..50_u32, mask(), key()).prop_map(|(n, mask, key)| Step::Insert(n, MaskedKey::new(mask, key))),
        3 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => Just(Step::Defer),
        1 => Just(Step::Settle),
    ]
}

proptest! {
    // Each case selects probes some hundred times.
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn finds_the_matches_of_a_linear_search(
        steps in prop::collection::vec(step(), 0..300),
        keys in prop::collection::vec(key(), 0..80),
    ) {
        let (mut table, mut list) = (Table::with_seed(Seed::fixed()), Vec::new());
        for step in steps {
            step.apply(&mut table, &mut list);
        }
        prop_assert_eq!(find_sorted(&table, &keys), linear_search(&list, &keys));
        let different: std::collections::HashSet<MaskedKey> =
            list.iter().map(|(_, masked)| *masked).collect();
        prop_assert_eq!(table.len(), different.len());
        prop_assert_eq!(table.masks().map(|it| it.values).sum::<usize>(), different.len());
    }
}

/// Masks of no word, of one, of several and of more than fit into a group.
const FEW_MASKS: [[u64; WORDS]; 14] = [
    [0; 8],
    [0xff, 0, 0, 0, 0, 0, 0, 0],
    [0xf0, 0, 0, 0, 0, 0, 0, 0],
    [0, 0, u64::MAX, 0, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0, 0, 1],
    [0, 0, 0, 0, 0, 0, 0, 3],
    [0xff, 0, 0, 0, 0, 0, 1, 0],
    [0xff, 0, 3, 0, 0, 0, 0, 0],
    [0, 1, 0, 1, 0, 1, 0, 0],
    [0, 3, 0, 0, 1, 1, 0, 0],
    [1, 1, 1, 1, 0, 0, 0, 0],
    [3, 3, 3, 3, 3, 3, 3, 3],
    [0, 0, 0, u64::MAX, 0, 0, 0, 0],
    [0, 0, 0, 0, 0xffff, 0, 0, 0],
];

fn few_step() -> impl Strategy<Value = Step> {
    let mask = prop::sample::select(FEW_MASKS.to_vec()).prop_map(Key);
    prop_oneof![
        6 => (0..9_u32, mask, few_key()).prop_map(|(n, mask, key)| Step::Insert(n, MaskedKey::new(mask, key))),
        4 => any::<prop::sample::Index>().prop_map(Step::Remove),
        1 => Just(Step::Defer),
        1 => Just(Step::Settle),
    ]
}

fn few_key() -> impl Strategy<Value = Key> {
    prop::array::uniform8(0..3_u64).prop_map(Key)
}

proptest! {
    /// Masks get their first value, another, and lose them again: a table of few is compared rule by rule,
    /// and looks rules up as soon as a mask has two values.
    #[test]
    fn few_masks_match_as_a_linear_search(
        steps in prop::collection::vec(few_step(), 0..60),
        keys in prop::collection::vec(few_key(), 1..6),
    ) {
        let (mut table, mut list) = (Table::with_seed(Seed::fixed()), Vec::new());
        for step in steps {
            step.apply(&mut table, &mut list);
            let expected = linear_search(&list, &keys);
            prop_assert_eq!(&find_sorted(&table, &keys), &expected);
            let mut one_by_one = Vec::new();
            for (key, at) in keys.iter().zip(0..) {
                table.for_each_match(key, |rule| one_by_one.push(RuleMatch { key: at, rule }));
            }
            one_by_one.sort();
            prop_assert_eq!(one_by_one, expected);
        }
    }
}

/// Pseudorandom numbers.
fn scramble(n: u64) -> u64 {
    Seed::fixed().mix(n, 7)
}

/// A rule with one of `masks` pairs of prefixes.
fn prefixes(n: u64, masks: u64) -> MaskedKey {
    let (which, bits) = (n % masks, scramble(n));
    let (src, dst) = (8 + which % 25, 8 + which / 25 * 3 % 25);
    let prefix = |length: u64| (u64::from(u32::MAX) << (32 - length)) & u64::from(u32::MAX);
    let mask = prefix(src) << 32 | prefix(dst);
    MaskedKey::new(Key([0, mask, 0, 0, 0, 0, 0, 0]), Key([0, bits, 0, 0, 0, 0, 0, 0]))
}

#[test]
fn deferred_probes_are_selected_by_settle() {
    let mut table = Table::with_seed(Seed::fixed());
    table.defer_probes();
    (0..2000).for_each(|n| table.insert(n as u32, &prefixes(n, 200)));
    assert_eq!(table.probes(), 0);
    table.settle();
    assert!(table.probes() > 1, "{}", table.probes());
}

#[test]
fn rules_of_many_masks_are_inserted_and_removed() {
    let mut table = Table::with_seed(Seed::fixed());
    let rules: Vec<(u32, MaskedKey)> = (0..20_000).map(|n| (n as u32, prefixes(n, 200))).collect();
    for (rule, masked) in &rules {
        table.insert(*rule, masked);
    }
    let key =
        |n: u64| Key(std::array::from_fn(|word| if word == 1 { scramble(n * 37) } else { n }));
    let keys: Vec<Key> = (0..100).map(key).collect();
    assert_eq!(find_sorted(&table, &keys), linear_search(&rules, &keys));
    assert_eq!(table.masks().count(), 200);
    assert!(table.probes() > 1, "{}", table.probes());
    // Removing half of the rules leaves a table that finds the others.
    for (rule, masked) in &rules[10_000..] {
        assert!(table.remove(*rule, masked));
        assert!(!table.remove(*rule, masked), "it has gone");
    }
    assert_eq!(find_sorted(&table, &keys), linear_search(&rules[..10_000], &keys));
}

#[test]
fn probes_leave_few_masks_to_look_up() {
    let mut table = Table::with_seed(Seed::fixed());
    (0..2000).for_each(|n| table.insert(n as u32, &prefixes(n, 200)));
    table.settle();
    let keys = (0..2000).map(|n| *prefixes(n, 200).value());
    let lookups: u32 = keys.map(|key| table.lookups(&key)).sum();
    assert!(lookups < 2000 * 8, "{lookups} lookups for 2000 keys");
}

#[test]
fn later_masks_are_ruled_out_too() {
    let mut table = Table::with_seed(Seed::fixed());
    // Some hundred rules of few masks, then as many of many masks.
    (0..500).for_each(|n| table.insert(n as u32, &prefixes(n, 20)));
    (500..1000).for_each(|n| table.insert(n as u32, &prefixes(n, 200)));
    let keys = (500..1000).map(|n| *prefixes(n, 200).value());
    let lookups: u32 = keys.map(|key| table.lookups(&key)).sum();
    assert!(lookups < 500 * 16, "{lookups} lookups for 500 keys");
}

#[test]
fn masks_beyond_one_block_get_further_blocks() {
    let mut table = Table::with_seed(Seed::fixed());
    let rule = |n: u32| {
        let mask = Key([u64::from(n) + 1, u64::MAX, 0, 0, 0, 0, 0, 0]);
        MaskedKey::new(mask, Key([u64::MAX, 5, 0, 0, 0, 0, 0, 0]))
    };
    (0..600).for_each(|n| table.insert(n, &rule(n)));
    let keys = [Key([u64::MAX, 5, 0, 0, 0, 0, 0, 0])];
    assert_eq!(find_sorted(&table, &keys).len(), 600);
    // Positions of masks without rules are reused.
    (0..600).for_each(|n| assert!(table.remove(n, &rule(n))));
    (600..1200).for_each(|n| table.insert(n, &rule(n)));
    assert_eq!(table.blocks.len(), 3);
    assert_eq!(find_sorted(&table, &keys).len(), 600);
}

#[test]
fn all_rules_of_one_key_are_found() {
    let mut table = Table::with_seed(Seed::fixed());
    let masked = MaskedKey::new(Key([u64::MAX; WORDS]), Key([9; WORDS]));
    (0..5).for_each(|rule| table.insert(rule, &masked));
    assert!(table.remove(2, &masked));
    assert!(!table.remove(2, &masked));
    let rules: Vec<u32> =
        find_sorted(&table, &[Key([9; WORDS])]).iter().map(|hit| hit.rule).collect();
    assert_eq!(rules, [0, 1, 3, 4]);
    [0, 1, 3, 4].iter().for_each(|&rule| assert!(table.remove(rule, &masked)));
    assert!(table.is_empty());
}
