//! Lists in which the first match decides: policies without effect, and the order of the others.

use super::{Item, Samples};
use crate::bits::Ternary;
use crate::policy::stage::remove_shadowed;

/// Whether two policies do the same.
fn has_same_effect(a: &Item, b: &Item) -> bool {
    (a.policy.action, a.matched) == (b.policy.action, b.matched)
}

/// Whether two neighbours may change places.
fn is_exchangeable(a: &Item, b: &Item) -> bool {
    a.policy.condition.excludes(&b.policy.condition) || has_same_effect(a, b)
}

/// The policies that packets come to.
pub(super) fn reachable(items: &[Item]) -> Vec<Item> {
    let mut left = items.iter().enumerate().map(|(at, it)| (it.policy.condition, at)).collect();
    remove_shadowed(&mut left);
    left.into_iter().map(|(_, at)| items[at]).collect()
}

/// The policies with an effect: no later one does the same to all their packets, and they do something, or
/// a later policy does to one of their packets.
pub(super) fn effective(items: &[Item], rest: usize) -> Vec<Item> {
    let mut items = items.to_vec();
    for at in (0..items.len()).rev() {
        let (own, later) = (items[at], &items[at + 1..]);
        let does_nothing = own.policy.action == Ternary::ANY && own.matched == rest;
        let is_idle = does_nothing && later.iter().all(|it| is_exchangeable(it, &own));
        if is_idle || is_repeated(&own, later) {
            items.remove(at);
        }
    }
    items
}

/// Whether a later policy has the same effect on all packets of a policy, and none before it another.
fn is_repeated(own: &Item, later: &[Item]) -> bool {
    let contains = |it: &Item| it.policy.condition.contains(&own.policy.condition);
    let next = later.iter().find(|it| contains(it) || !is_exchangeable(it, own));
    next.is_some_and(|it| contains(it) && has_same_effect(it, own))
}

/// A set of positions in a list.
#[derive(Clone)]
struct Positions(Vec<u64>);

impl Positions {
    fn new(count: usize) -> Positions {
        Positions(vec![0; count.div_ceil(64)])
    }

    fn insert(&mut self, at: usize) {
        self.0[at / 64] |= 1 << (at % 64);
    }

    fn add(&mut self, other: &Positions) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    fn contains(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }
}

/// The policies in another order with the same results: of all policies, each together with those that
/// must come before it, those with the most hits for each match come first, and so on. This is the
/// heuristic for one machine with precedences whose optimum is hard to find (Lawler 1978).
pub(super) fn arrange(items: &[Item], samples: &Samples) -> Vec<Item> {
    let hits = hits(items, samples);
    let before = predecessors(items);
    let mut is_left = vec![true; items.len()];
    // By policy with hits: hits and number of matches of it and what must come before it.
    let ratio = |at: usize, is_left: &[bool]| {
        let members = (0..=at).filter(|&it| is_left[it] && (it == at || before[at].contains(it)));
        members.fold((0, 0), |(all, count), it| (all + hits[it], count + 1))
    };
    let candidates: Vec<usize> = (0..items.len()).filter(|&at| hits[at] > 0).collect();
    let mut ratios: Vec<(u64, u64)> = candidates.iter().map(|&at| ratio(at, &is_left)).collect();
    let mut arranged = Vec::with_capacity(items.len());
    loop {
        let open = candidates.iter().zip(&ratios).filter(|(at, _)| is_left[**at]);
        // The first one of equals.
        let best = open.reduce(|best, it| {
            let (a, b) = (best.1, it.1);
            let is_more = u128::from(b.0) * u128::from(a.1) > u128::from(a.0) * u128::from(b.1);
            if is_more { it } else { best }
        });
        let Some((&best, _)) = best else { break };
        let is_member = |it: usize| it == best || before[best].contains(it);
        let members: Vec<usize> = (0..=best).filter(|&it| is_left[it] && is_member(it)).collect();
        for &it in &members {
            is_left[it] = false;
            arranged.push(items[it]);
        }
        for (ratio_of, &at) in ratios.iter_mut().zip(&candidates) {
            if is_left[at] && members.iter().any(|&it| before[at].contains(it)) {
                *ratio_of = ratio(at, &is_left);
            }
        }
    }
    arranged.extend((0..items.len()).filter(|&at| is_left[at]).map(|at| items[at]));
    arranged
}

/// By policy: the samples that match it first.
fn hits(items: &[Item], samples: &Samples) -> Vec<u64> {
    let mut hits = vec![0; items.len()];
    for &(string, count) in samples {
        let first = items.iter().position(|it| it.policy.condition.matches(string));
        first.into_iter().for_each(|at| hits[at] += count);
    }
    hits
}

/// By policy: all policies that must come before it.
fn predecessors(items: &[Item]) -> Vec<Positions> {
    let mut before: Vec<Positions> = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        let mut own = Positions::new(items.len());
        for earlier in (0..at).rev() {
            if !own.contains(earlier) && !is_exchangeable(&items[earlier], item) {
                own.insert(earlier);
                own.add(&before[earlier]);
            }
        }
        before.push(own);
    }
    before
}
