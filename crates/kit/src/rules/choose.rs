//! The choice of probes: by trying on the rules themselves what each would rule out.

use super::block::MASKS;
use super::common::Common;
use super::filter::Part;
use super::groups::Groups;
use super::index::Number;
use super::shape::Shape;
use super::{Key, WORDS};
use std::collections::HashMap;

/// Groups that are looked at.
const SAMPLE: usize = 512;
/// Of these, how many stand for packets.
const PACKETS: usize = 16;
/// Masks of which the pieces are counted.
const COUNTED: usize = 64;
/// Parts that are tried.
const TRIED: usize = 24;
/// The most probes.
const MOST: usize = 8;
/// A probe has to save so many lookups of each packet, or it costs more than it gives.
const WORTH: f32 = 0.4;

/// A group that is looked at.
struct Sample {
    place: usize,
    mask: Key,
    value: Key,
}

/// A mask to choose among.
pub(super) struct Candidate<'a> {
    /// Its place in the block.
    pub(super) place: usize,
    /// The mask.
    pub(super) shape: &'a Shape,
    /// How many groups it has.
    pub(super) groups: usize,
    /// What these have in common.
    pub(super) common: Common,
}

/// The parts that together rule out most masks, for packets that match some rule.
pub(super) fn choose(
    block: usize,
    masks: &[Candidate],
    cells: usize,
    groups: &Groups,
) -> Vec<Part> {
    let samples = sample(block, masks, groups);
    let packets = samples.len().min(PACKETS);
    let tried: Vec<(Part, Vec<f32>)> = parts(masks)
        .into_iter()
        .map(|part| (part, passes(part, &samples[..packets], &samples, masks)))
        .collect();
    let collisions = collisions(masks, cells);
    let mut left: Vec<f32> = samples[..packets]
        .iter()
        .flat_map(|packet| masks.iter().map(|mask| expense(&mask.common, packet)))
        .collect();
    let mut chosen: Vec<Part> = Vec::new();
    let (mut best, mut other) = (Vec::new(), Vec::new());
    while chosen.len() < MOST {
        let now: f32 = left.iter().sum();
        let mut least: Option<(f32, Part)> = None;
        for (part, is) in &tried {
            // Bits that two parts have in common rule out values once, and collisions twice.
            let before = chosen.iter().filter(|it| it.overlaps(part)).count();
            let then =
                lessened(&left, is, [before, before + 1].map(|n| &collisions[n]), &mut other);
            if least.is_none_or(|(least, _)| then < least) {
                least = Some((then, *part));
                std::mem::swap(&mut best, &mut other);
            }
        }
        let Some((_, part)) = least.filter(|(then, _)| now - then >= WORTH * packets as f32) else {
            break;
        };
        chosen.push(part);
        std::mem::swap(&mut left, &mut best);
    }
    chosen
}

/// How probably values of each mask share a cell with another one, in none, one, two... probes.
fn collisions(masks: &[Candidate], cells: usize) -> Vec<Vec<f32>> {
    let once = masks.iter().map(|mask| mask.groups as f32 / cells as f32);
    let once: Vec<f32> = once.map(|expected| expected / (1.0 + expected)).collect();
    let times = |n| once.iter().map(|once| f32::powi(*once, n)).collect();
    (0..=MOST as i32).map(times).collect()
}

/// What is left to be paid for each packet and mask with another probe, where one of the same
/// bits lets pass what `is` says, and of others the collisions before and now; and all of it.
fn lessened(left: &[f32], is: &[f32], [before, now]: [&Vec<f32>; 2], then: &mut Vec<f32>) -> f32 {
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

/// What it costs to look a packet up under a mask, where a lookup that goes all the way costs
/// one: where the packet lacks what the rules of the mask have in common, that is all that is
/// looked at. Of what its own rule does not say of a packet, nobody knows.
fn expense(common: &Common, packet: &Sample) -> f32 {
    const GLANCE: f32 = 0.1;
    const UNKNOWN: f32 = 0.5;
    if common.holds(&packet.value) {
        1.0
    } else if common.differs(&packet.value, &packet.mask) {
        GLANCE
    } else {
        UNKNOWN
    }
}

/// Groups of a block from everywhere.
fn sample(block: usize, masks: &[Candidate], groups: &Groups) -> Vec<Sample> {
    let mut shapes = [None; MASKS];
    masks.iter().for_each(|mask| shapes[mask.place] = Some(mask.shape));
    let all = groups.places();
    let step = all.div_ceil(SAMPLE).max(1);
    // A step that shares a factor with the order in which rules came would miss some.
    let numbers = (0..all).step_by(step).map(|at| at + (at / step * 7) % step);
    let samples = numbers.filter(|&number| number < all).filter_map(|number| {
        let of = groups.shape_at(number)? as usize;
        let (place, shape) = (of % MASKS, shapes[of % MASKS]?);
        (of / MASKS == block).then(|| Sample {
            place,
            mask: shape.mask,
            value: groups.value(number as Number, shape),
        })
    });
    samples.collect()
}

/// Pieces of the masks: words, halves, quarters and bytes; those first that many masks have and
/// that have many bits.
fn parts(masks: &[Candidate]) -> Vec<Part> {
    let step = masks.len().div_ceil(COUNTED).max(1);
    let masks: Vec<&Candidate> = masks.iter().step_by(step).collect();
    let mut pieces: HashMap<Part, u32> = HashMap::new();
    for shape in masks.iter().map(|mask| mask.shape) {
        for word in 0..WORDS {
            for (width, count) in [(64, 1), (32, 2), (16, 4), (8, 8)] {
                for at in 0..count {
                    let piece = (u64::MAX >> (64 - width)) << (at * width);
                    let mask = shape.mask.0[word] & piece;
                    if mask != 0 {
                        pieces.entry(Part { word, mask }).or_default();
                    }
                }
            }
        }
    }
    for (part, worth) in &mut pieces {
        let having = masks.iter().filter(|mask| part.is_in(mask.shape)).count() as u32;
        *worth = having * part.mask.count_ones().min(16);
    }
    let mut parts: Vec<(Part, u32)> = pieces.into_iter().collect();
    parts.sort_by_key(|(part, worth)| (std::cmp::Reverse(*worth), part.word, part.mask));
    parts.truncate(TRIED);
    parts.into_iter().map(|(part, _)| part).collect()
}

/// For each packet and mask, how probably some rule of the mask has the packet's value of
/// this part: by how often other rules have the value of the packet there.
fn passes(part: Part, packets: &[Sample], samples: &[Sample], masks: &[Candidate]) -> Vec<f32> {
    let mut having = [false; MASKS];
    masks.iter().for_each(|mask| having[mask.place] = part.is_in(mask.shape));
    let values: Vec<u64> =
        samples.iter().filter(|it| having[it.place]).map(|it| part.of(&it.value)).collect();
    let mut counts: HashMap<u64, u32> = HashMap::new();
    values.iter().for_each(|value| *counts.entry(*value).or_default() += 1);
    let all: usize = masks.iter().filter(|mask| having[mask.place]).map(|mask| mask.groups).sum();
    let mut passes = Vec::with_capacity(packets.len() * masks.len());
    for (at, packet) in packets.iter().enumerate() {
        // What a rule does not say, packets have as other rules say it.
        let value = match having[packet.place] || values.is_empty() {
            true => part.of(&packet.value),
            false => values[at * 31 % values.len()],
        };
        // The one that was drawn says nothing of others.
        let others = counts.get(&value).map_or(0, |count| count - 1);
        let often = others as f32 / values.len().max(1) as f32 + 1.0 / all.max(1) as f32;
        passes.extend(masks.iter().map(|mask| {
            let expected = mask.groups as f32 * often;
            match having[mask.place] && mask.place != packet.place {
                true => expected / (1.0 + expected),
                false => 1.0,
            }
        }));
    }
    passes
}
