//! Processor: the middlebox B(j).

use super::BlindedHeader;
use crate::bits::Bits;
use crate::counter::blind_index;
use crate::epoch::{EpochRows, Searches, Work};
use crate::private::{ActionId, ChainPosition, Chains, MatchId, PrivateFunction};
use crate::setup::{ProcessorParty, SetupOptions};
use crate::share::ActionShare;
use std::hint::black_box;
use std::sync::Arc;
use subtle::Choice;

/// Packets that are processed together: as many as a mask has bits.
const LOT: usize = u64::BITS as usize;

/// Searches that are made together: the memory that they touch stays in a first-level cache.
const SEARCHES: usize = 256;

/// A middlebox B(j), which knows projections, blinded header strings and its shares of the actions.
#[derive(Clone, Debug)]
pub struct Processor {
    function: Arc<PrivateFunction>,
    shares: Arc<[ActionShare]>,
    rows: Arc<EpochRows>,
    options: SetupOptions,
    lot: LotState,
    work: Work,
}

/// Scratch buffers for the packets of a lot, which are numbered from 0.
#[derive(Clone, Debug, Default)]
struct LotState {
    /// By packet: its blind.
    blinds: Vec<u64>,
    /// By packet: where it is in the tree; `None` at a leaf, or without a blind.
    at: Vec<Option<ChainPosition>>,
    /// By projection: the packets whose match of the projection is known, a bit each.
    known: Vec<u64>,
    /// By projection: the packets that need their match of the projection.
    wanted: Vec<u64>,
    /// By projection, by packet: the match.
    found: Vec<[Option<MatchId>; LOT]>,
    /// Searches that have not been made.
    searches: Searches,
    /// Actions whose shares have not been added: the packet, and the action.
    actions: Vec<(u8, ActionId)>,
}

/// The numbers of the bits that are set.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(at)
    })
}

impl LotState {
    fn is_known(&self, projection: u32, packet: usize) -> bool {
        self.known[projection as usize] >> packet & 1 != 0
    }
}

impl Processor {
    /// A processor in the epoch of these rows.
    pub fn new(party: &ProcessorParty, rows: Arc<EpochRows>) -> Processor {
        let ProcessorParty { info, function, shares, .. } = party;
        let count = function.projections().len();
        let lot = LotState {
            known: vec![0; count],
            wanted: vec![0; count],
            found: vec![[None; LOT]; count],
            ..LotState::default()
        };
        Processor {
            function: function.clone(),
            shares: shares.clone(),
            rows,
            options: info.options,
            lot,
            work: Work::default(),
        }
    }

    /// The processor's shares of the results for packets, which replace those in `shares`: the
    /// strings of each projection are hashed together, and all matches of the projection are looked
    /// up at once. The share of a packet whose counter has no blind is 0; no client takes it.
    pub fn process_burst(&mut self, packets: &[BlindedHeader], shares: &mut Vec<ActionShare>) {
        shares.clear();
        shares.resize(packets.len(), ActionShare::ZERO);
        for (packets, shares) in packets.chunks(LOT).zip(shares.chunks_mut(LOT)) {
            self.process_at_once(packets, shares);
        }
    }

    /// The same for one packet.
    pub fn process(&mut self, packet: &BlindedHeader) -> ActionShare {
        let mut share = ActionShare::ZERO;
        self.process_at_once(std::slice::from_ref(packet), std::slice::from_mut(&mut share));
        share
    }

    /// The same for a lot: [`LOT`] packets at most, whose shares are 0 before.
    fn process_at_once(&mut self, packets: &[BlindedHeader], shares: &mut [ActionShare]) {
        self.begin(packets);
        match self.options.has_constant_work {
            true => self.process_constant(packets, shares),
            false => self.process_lot(packets, shares),
        }
    }

    /// The same as the paper has it: a hash for each match that is tried (algorithms Private
    /// Traversal, Compute Match and Compute Action).
    pub fn process_each_match(&self, packet: &BlindedHeader) -> ActionShare {
        let Processor { function, shares, rows, .. } = self;
        let mut sum = ActionShare::ZERO;
        let Some(blind) = self.blind(packet) else { return sum };
        let row = rows.row(blind);
        function.traverse(
            |id| rows.is_match(row, id, function.matches()[id as usize], packet.header),
            |action| sum = sum.plus(&shares[action as usize]),
        );
        sum
    }

    /// The work that all packets together have taken, but for those of
    /// [`Processor::process_each_match`].
    pub fn work(&self) -> Work {
        self.work
    }

    #[inline]
    fn blind(&self, packet: &BlindedHeader) -> Option<u64> {
        blind_index(packet.counter, &self.options).filter(|&it| it < self.rows.blinds())
    }

    fn begin(&mut self, packets: &[BlindedHeader]) {
        let root = self.function.chains().root();
        self.lot.blinds.clear();
        self.lot.at.clear();
        for packet in packets {
            let blind = self.blind(packet);
            self.lot.blinds.push(blind.unwrap_or_default());
            self.lot.at.push(blind.and(root));
        }
        self.lot.known.fill(0);
    }

    /// Rounds of hashes, searches and steps, until all packets are at leaves.
    fn process_lot(&mut self, packets: &[BlindedHeader], shares: &mut [ActionShare]) {
        while self.want_next() {
            self.search(packets);
            (0..packets.len()).for_each(|packet| self.advance(packet));
            // In a loop of their own, as the shares of many actions are not in a cache.
            for (packet, action) in self.lot.actions.drain(..) {
                let sum = &mut shares[usize::from(packet)];
                *sum = sum.plus(&self.shares[action as usize]);
                self.work.additions += 1;
            }
        }
    }

    /// Notes the matches that packets need for their next steps; whether there are packets at all.
    fn want_next(&mut self) -> bool {
        let LotState { at, known, wanted, .. } = &mut self.lot;
        let chains = self.function.chains();
        wanted.fill(0);
        let mut has_more = false;
        for (packet, at) in at.iter().enumerate() {
            let Some(at) = *at else { continue };
            has_more = true;
            chains.projections(at).iter().for_each(|&it| wanted[it as usize] |= 1 << packet);
        }
        wanted.iter_mut().zip(known).for_each(|(wanted, known)| *wanted &= !*known);
        has_more
    }

    /// Finds the matches that are wanted.
    fn search(&mut self, packets: &[BlindedHeader]) {
        let Processor { rows, lot, work, options, .. } = self;
        let (is_constant, chains) = (options.has_constant_work, self.function.chains());
        for (projection, hash) in rows.hashes().iter().enumerate() {
            let wanted = lot.wanted[projection];
            if wanted == 0 {
                continue;
            }
            let (mut askers, blinds) = (bits(wanted), &lot.blinds);
            let searches = &mut lot.searches;
            let strings = bits(wanted).map(|packet| packets[packet].header);
            hash.digest_each(strings, |_, digest| {
                if let Some(packet) = askers.next() {
                    searches.push(rows, packet as u8, blinds[packet], projection, digest);
                }
            });
            work.hashes += u64::from(wanted.count_ones());
            if lot.searches.len() + LOT > SEARCHES {
                lot.find(rows, chains, is_constant, work);
            }
        }
        lot.find(rows, chains, is_constant, work);
    }

    /// Steps of a packet through the tree, as far as its matches are known.
    #[inline]
    fn advance(&mut self, packet: usize) {
        let Processor { lot, work, .. } = self;
        let chains = self.function.chains();
        while let Some(at) = lot.at[packet] {
            if !chains.projections(at).iter().all(|&it| lot.is_known(it, packet)) {
                return;
            }
            let step = chains.step(at, |projection| lot.found[projection][packet]);
            work.steps += 1;
            lot.actions.extend(step.action.map(|action| (packet as u8, action)));
            lot.at[packet] = step.next;
        }
    }

    /// The same with as much work for each packet that has a blind, whatever it matches: a hash and a
    /// search for each projection, and as many steps and additions as the longest path has. Steps
    /// that end without a match, and those behind the leaf, add 0.
    fn process_constant(&mut self, packets: &[BlindedHeader], shares: &mut [ActionShare]) {
        let has_blind = |(packet, at): (usize, &Option<_>)| u64::from(at.is_some()) << packet;
        let present = self.lot.at.iter().enumerate().map(has_blind).sum();
        self.lot.wanted.fill(present);
        self.search(packets);
        let Processor { lot, work, shares: own, .. } = self;
        let chains = self.function.chains();
        for packet in bits(present) {
            let (sum, mut at) = (&mut shares[packet], lot.at[packet]);
            for _ in 0..chains.longest() {
                let step = at.map(|at| chains.step(at, |it| lot.found[it][packet]));
                let action = step.and_then(|it| it.action);
                *sum = plus_if(*sum, &own[action.unwrap_or(0) as usize], action.is_some());
                at = step.and_then(|it| it.next);
                work.steps += 1;
                work.additions += 1;
            }
        }
    }
}

impl LotState {
    /// Makes the searches.
    fn find(&mut self, rows: &EpochRows, chains: &Chains, is_constant: bool, work: &mut Work) {
        let (LotState { searches, known, found, .. }, mut touched) = (self, 0);
        searches.find(rows, is_constant, work, |packet, projection, id| {
            let (packet, projection) = (usize::from(packet), projection as usize);
            touched ^= id.map_or(0, |id| chains.touch(id));
            found[projection][packet] = id;
            known[projection] |= 1 << packet;
        });
        black_box(touched);
    }
}

/// The sum with a share or with 0, in a time that does not depend on the choice.
#[inline]
fn plus_if(sum: ActionShare, share: &ActionShare, is_added: bool) -> ActionShare {
    let mask = Choice::from(u8::from(is_added)).unwrap_u8().wrapping_neg();
    let chosen = |it: Bits| Bits(it.0.map(|byte| byte & mask));
    sum.plus(&ActionShare { value: chosen(share.value), projection: chosen(share.projection) })
}
