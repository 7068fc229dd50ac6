//! The rules by slot.

use super::compile::CompiledRule;
use crate::rewrite::RulePlan;
use crate::rule::Chance;
use crate::rule_set::Entry;
use std::sync::Arc;

/// The rule accepts.
pub(crate) const ACCEPTS: u8 = 1;
/// The rule drops with certainty.
pub(crate) const DROPS: u8 = 2;
/// The rule rewrites, rejects or logs packets, or drops with a probability.
pub(crate) const CHANGES: u8 = 4;
/// The rule is stateful.
pub(crate) const STATEFUL: u8 = 8;
/// The keys are wider than the rule: the predicates must be tested on the packet.
pub(crate) const INEXACT: u8 = 16;

/// The slot is empty.
const REMOVED: u8 = 32;

/// Maximum number of slots.
pub(crate) const MAX_SLOTS: usize = 1 << 26;

/// Returns the action flags of a rule.
fn actions(entry: &Entry, is_exact: bool) -> u8 {
    let RulePlan { drop, rejection, accept, logs, hops, fields, nat_changes, options } =
        &entry.plan;
    let is_plain = |chance| chance == Chance::ALWAYS && rejection.is_none();
    let drops = drop.map(|chance| if is_plain(chance) { DROPS } else { CHANGES });
    // The entry of the connection keeps the translation.
    let nat_changes = !nat_changes.is_empty() && !entry.rule.stateful;
    let changes =
        *logs || nat_changes || !(hops.is_empty() && fields.is_empty() && options.is_empty());
    drops.unwrap_or_default()
        | if *accept { ACCEPTS } else { 0 }
        | if changes { CHANGES } else { 0 }
        | if entry.rule.stateful { STATEFUL } else { 0 }
        | if is_exact { 0 } else { INEXACT }
}

/// Slot and action flags of a rule in one word, as the table stores it: most packets need no more
/// of a rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PackedRule(pub(super) u32);

impl PackedRule {
    /// Number of bits of the slot.
    const SLOT_BITS: u32 = MAX_SLOTS.trailing_zeros();

    pub(super) fn new(slot: usize, actions: u8) -> PackedRule {
        PackedRule(slot as u32 | u32::from(actions) << PackedRule::SLOT_BITS)
    }

    /// Returns the slot.
    #[inline]
    pub(super) fn slot(self) -> u32 {
        self.0 & (MAX_SLOTS as u32 - 1)
    }

    /// Returns the action flags.
    #[inline]
    pub(super) fn actions(self) -> u8 {
        (self.0 >> PackedRule::SLOT_BITS) as u8
    }
}

// Values in the table have 31 bits.
const _: () = assert!(
    ((REMOVED - 1) as u32) << PackedRule::SLOT_BITS | (MAX_SLOTS as u32 - 1) == u32::MAX >> 1
);

/// The hot fields of a rule, for connections and for sorting.
#[derive(Clone, Copy)]
struct SlotInfo {
    rank: u64,
    /// Low bits of the identifier of the rule in this slot.
    id: u32,
    actions: u8,
}

/// An unused slot.
const EMPTY: SlotInfo = SlotInfo { rank: 0, id: 0, actions: REMOVED };

/// A reference to a rule that detects reuse of its slot; valid for all workers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct RuleRef {
    pub(crate) slot: u32,
    /// Low bits of the identifier.
    pub(crate) id: u32,
}

impl RuleRef {
    /// Creates a reference.
    pub(crate) fn new(entry: &Entry) -> RuleRef {
        RuleRef { slot: entry.slot as u32, id: entry.id as u32 }
    }

    /// Whether the rule is newer than the one with this identifier.
    pub(crate) fn is_newer_than(self, id: u64) -> bool {
        // Serial number arithmetic: the low bits may have wrapped.
        self.id.wrapping_sub(id as u32) as i32 > 0
    }
}

/// The rules by their places.
#[derive(Clone, Default)]
pub(crate) struct RuleSlots {
    slots: Vec<SlotInfo>,
    entries: Vec<Option<Arc<Entry>>>,
}

impl RuleSlots {
    /// Number of rules.
    pub(super) fn len(&self) -> usize {
        self.entries.iter().flatten().count()
    }

    /// Iterates over the rules with their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Arc<Entry>)> {
        let all = self.slots.iter().zip(&self.entries);
        all.filter_map(|(slot_info, entry)| Some((slot_info.rank, entry.as_ref()?)))
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Grows to a number of slots.
    fn grow(&mut self, slots: usize) {
        if self.slots.len() < slots {
            self.slots.resize(slots, EMPTY);
            self.entries.resize(slots, None);
        }
    }

    /// Puts a rule into its empty slot.
    pub(super) fn insert(
        &mut self,
        entry: &Arc<Entry>,
        rank: u64,
        compiled: &CompiledRule,
    ) -> PackedRule {
        self.grow(entry.slot + 1);
        let (id, actions) = (RuleRef::new(entry).id, actions(entry, compiled.is_exact));
        self.slots[entry.slot] = SlotInfo { rank, id, actions };
        self.entries[entry.slot] = Some(entry.clone());
        PackedRule::new(entry.slot, actions)
    }

    /// Removes the rule in a slot.
    pub(super) fn remove(&mut self, slot: usize) -> Option<(PackedRule, Arc<Entry>)> {
        let entry = self.entries.get_mut(slot)?.take()?;
        let actions = std::mem::replace(&mut self.slots[slot].actions, REMOVED);
        Some((PackedRule::new(slot, actions), entry))
    }

    /// Sets the rank of the rule in a slot.
    pub(super) fn set_rank(&mut self, slot: usize, rank: u64) {
        self.slots[slot].rank = rank;
    }

    /// Returns the rank of the rule in a slot.
    #[inline]
    pub(super) fn rank(&self, slot: u32) -> u64 {
        self.slots.get(slot as usize).map_or(u64::MAX, |it| it.rank)
    }

    /// Returns the rule in a slot.
    #[inline]
    pub(crate) fn entry(&self, slot: u32) -> Option<&Arc<Entry>> {
        self.entries.get(slot as usize)?.as_ref()
    }

    /// Resolves a reference; `None` if the rule has been removed.
    #[inline]
    pub(crate) fn resolve(&self, reference: RuleRef) -> Option<&Arc<Entry>> {
        let slot_info = self.slots.get(reference.slot as usize)?;
        self.entry(reference.slot).filter(|_| slot_info.id == reference.id)
    }

    /// Resolves the references to rules that still exist, with their slots.
    #[inline]
    pub(crate) fn resolve_all<'a>(
        &'a self,
        rules: &'a [RuleRef],
    ) -> impl Iterator<Item = (u32, &'a Arc<Entry>)> + Clone + 'a {
        rules.iter().filter_map(|&it| Some((it.slot, self.resolve(it)?)))
    }

    /// Returns the action flags of a referenced rule that still exists.
    #[inline]
    pub(crate) fn actions_of(&self, reference: RuleRef) -> Option<u8> {
        let slot_info = self.slots.get(reference.slot as usize)?;
        (slot_info.id == reference.id && slot_info.actions & REMOVED == 0)
            .then_some(slot_info.actions)
    }

    /// Sorts slots by the rank of their rules.
    #[inline]
    pub(crate) fn sort(&self, slots: &mut [u32]) {
        if slots.len() > 1 {
            slots.sort_unstable_by_key(|&slot| self.slots.get(slot as usize).map(|it| it.rank));
        }
    }
}
