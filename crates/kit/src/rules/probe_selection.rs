//! Selection of probes, by measuring on a sample of the rules which masks each would rule out.

use super::block::MASKS;
use super::common::CommonBits;
use super::filter::BitField;
use super::groups::Groups;
use super::index::GroupId;
use super::shape::Shape;
use super::{Key, WORDS};
use std::collections::HashMap;

/// Groups in the sample.
const SAMPLE_GROUPS: usize = 512;
/// Groups of the sample that stand for packets.
const SAMPLE_PACKETS: usize = 16;
/// Masks whose bit fields are counted.
const MAX_COUNTED_MASKS: usize = 64;
/// Bit fields that are evaluated.
const MAX_FIELDS: usize = 24;
/// The largest number of probes.
const MAX_PROBES: usize = 8;
/// The lookups that a probe has to save per packet, or it costs more than it saves.
const MIN_SAVING: f32 = 0.4;

/// A group of the sample.
struct Sample {
    position: usize,
    mask: Key,
    value: Key,
}

/// A mask with groups.
pub(super) struct Candidate<'a> {
    /// Its position in the block.
    pub(super) position: usize,
    /// The mask.
    pub(super) shape: &'a Shape,
    /// The number of its groups.
    pub(super) groups: usize,
    /// The bits that its groups have in common.
    pub(super) common: CommonBits,
}

/// The bit fields that together rule out most masks, for packets that match some rule.
pub(super) fn select_fields(
    block: usize,
    masks: &[Candidate],
    cells: usize,
    groups: &Groups,
) -> Vec<BitField> {
    let samples = sample_groups(block, masks, groups);
    let packets = samples.len().min(SAMPLE_PACKETS);
    let candidates: Vec<(BitField, Vec<f32>)> = bit_fields(masks)
        .into_iter()
        .map(|field| (field, pass_probabilities(field, &samples[..packets], &samples, masks)))
        .collect();
    let collisions = collisions(masks, cells);
    let mut left: Vec<f32> = samples[..packets]
        .iter()
        .flat_map(|packet| masks.iter().map(|mask| lookup_cost(&mask.common, packet)))
        .collect();
    let mut selected: Vec<BitField> = Vec::new();
    let (mut best, mut other) = (Vec::new(), Vec::new());
    while selected.len() < MAX_PROBES {
        let now: f32 = left.iter().sum();
        let mut best_choice: Option<(f32, BitField)> = None;
        for (field, is) in &candidates {
            // Bits that two fields have in common rule out values once, and collisions twice.
            let before = selected.iter().filter(|it| it.overlaps(field)).count();
            let then = remaining_costs(
                &left,
                is,
                [before, before + 1].map(|n| &collisions[n]),
                &mut other,
            );
            if best_choice.is_none_or(|(best_choice, _)| then < best_choice) {
                best_choice = Some((then, *field));
                std::mem::swap(&mut best, &mut other);
            }
        }
        let Some((_, field)) =
            best_choice.filter(|(then, _)| now - then >= MIN_SAVING * packets as f32)
        else {
            break;
        };
        selected.push(field);
        std::mem::swap(&mut left, &mut best);
    }
    selected
}

/// The probability that a value of each mask shares a cell with another value, by number of probes
/// from 0.
fn collisions(masks: &[Candidate], cells: usize) -> Vec<Vec<f32>> {
    let once = masks.iter().map(|mask| mask.groups as f32 / cells as f32);
    let once: Vec<f32> = once.map(|expected| expected / (1.0 + expected)).collect();
    let times = |n| once.iter().map(|once| f32::powi(*once, n)).collect();
    (0..=MAX_PROBES as i32).map(times).collect()
}

/// The cost that remains for each packet and mask with another probe, and its sum. `is` has the
/// pass rates of the probe's bits, `before` and `now` the collisions of values that differ.
fn remaining_costs(
    left: &[f32],
    is: &[f32],
    [before, now]: [&Vec<f32>; 2],
    then: &mut Vec<f32>,
) -> f32 {
    then.clear();
    let masks = now.len().max(1);
    for (left, is) in left.chunks(masks).zip(is.chunks(masks)) {
        let each = left.iter().zip(is).zip(before.iter().zip(now));
        then.extend(each.map(|((left, is), (before, now))| {
            let passes = |collides: &f32| is + (1.0 - is) * collides;
            left * passes(now) / passes(before)
        }));
    }
    then.iter().sum()
}

/// The cost of looking a packet up under a mask; a complete lookup costs 1. A packet that lacks the
/// mask's common bits is rejected early. Packet bits that the sample's rule does not fix are
/// unknown.
fn lookup_cost(common: &CommonBits, packet: &Sample) -> f32 {
    const EARLY_REJECT: f32 = 0.1;
    const UNKNOWN: f32 = 0.5;
    if common.holds(&packet.value) {
        1.0
    } else if common.differs(&packet.value, &packet.mask) {
        EARLY_REJECT
    } else {
        UNKNOWN
    }
}

/// Samples groups of a block, evenly over all numbers.
fn sample_groups(block: usize, masks: &[Candidate], groups: &Groups) -> Vec<Sample> {
    let mut shapes = [None; MASKS];
    masks.iter().for_each(|mask| shapes[mask.position] = Some(mask.shape));
    let all = groups.end();
    let step = all.div_ceil(SAMPLE_GROUPS).max(1);
    // A plain step that has a factor in common with the order of insertion would miss some rules.
    let numbers = (0..all).step_by(step).map(|at| at + (at / step * 7) % step);
    let samples = numbers.filter(|&number| number < all).filter_map(|number| {
        let of = groups.shape_at(number)? as usize;
        let (position, shape) = (of % MASKS, shapes[of % MASKS]?);
        (of / MASKS == block).then(|| Sample {
            position,
            mask: shape.mask,
            value: groups.value(number as GroupId, shape),
        })
    });
    samples.collect()
}

/// The bit fields of the masks: words, halves, quarters and bytes, sorted by how many masks have
/// them and how many bits they have.
fn bit_fields(masks: &[Candidate]) -> Vec<BitField> {
    let step = masks.len().div_ceil(MAX_COUNTED_MASKS).max(1);
    let masks: Vec<&Candidate> = masks.iter().step_by(step).collect();
    let mut worths: HashMap<BitField, u32> = HashMap::new();
    for shape in masks.iter().map(|mask| mask.shape) {
        for word in 0..WORDS {
            for (width, count) in [(64, 1), (32, 2), (16, 4), (8, 8)] {
                for at in 0..count {
                    let bits = (u64::MAX >> (64 - width)) << (at * width);
                    let mask = shape.mask.0[word] & bits;
                    if mask != 0 {
                        worths.entry(BitField { word, mask }).or_default();
                    }
                }
            }
        }
    }
    for (field, worth) in &mut worths {
        let having = masks.iter().filter(|mask| field.is_covered_by(mask.shape)).count() as u32;
        *worth = having * field.mask.count_ones().min(16);
    }
    let mut fields: Vec<(BitField, u32)> = worths.into_iter().collect();
    fields.sort_by_key(|(field, worth)| (std::cmp::Reverse(*worth), field.word, field.mask));
    fields.truncate(MAX_FIELDS);
    fields.into_iter().map(|(field, _)| field).collect()
}

/// For each packet and mask, the probability that some rule of the mask has the packet's value in
/// this field, from how often other rules have that value.
fn pass_probabilities(
    field: BitField,
    packets: &[Sample],
    samples: &[Sample],
    masks: &[Candidate],
) -> Vec<f32> {
    let mut having = [false; MASKS];
    masks.iter().for_each(|mask| having[mask.position] = field.is_covered_by(mask.shape));
    let values: Vec<u64> =
        samples.iter().filter(|it| having[it.position]).map(|it| field.value(&it.value)).collect();
    let mut counts: HashMap<u64, u32> = HashMap::new();
    values.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
    let all: usize =
        masks.iter().filter(|mask| having[mask.position]).map(|mask| mask.groups).sum();
    let mut passes = Vec::with_capacity(packets.len() * masks.len());
    for (at, packet) in packets.iter().enumerate() {
        // Bits that a rule does not fix are drawn from other rules.
        let value = match having[packet.position] || values.is_empty() {
            true => field.value(&packet.value),
            false => values[at * 31 % values.len()],
        };
        // The drawn value itself does not count.
        let others = counts.get(&value).map_or(0, |count| count - 1);
        let often = others as f32 / values.len().max(1) as f32 + 1.0 / all.max(1) as f32;
        passes.extend(masks.iter().map(|mask| {
            let expected = mask.groups as f32 * often;
            match having[mask.position] && mask.position != packet.position {
                true => expected / (1.0 + expected),
                false => 1.0,
            }
        }));
    }
    passes
}
