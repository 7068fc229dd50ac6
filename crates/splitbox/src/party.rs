//! The parties, and the setup that gives each of them what it may know (paper, figure 21).

use crate::bits::{Bits, Ternary};
use crate::digest::HashKind;
use crate::epoch::{EpochRows, EpochSecrets};
use crate::function::NetworkFunction;
use crate::private::{MatchId, PrivateFunction};
use crate::secret::{BlindStream, Key, MAX_BLINDS, RandomError};
use crate::share::{self, ActionShare};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// The sizes and choices of a setup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetupOptions {
    /// t: the number of processors.
    pub processors: usize,
    /// ℍ.
    pub hash: HashKind,
    /// n: the bits of a header string that the function is applied to.
    pub header_bits: usize,
    /// l: the blinds of an epoch.
    pub blinds: u64,
}

/// The maximum number of processors.
pub const MAX_PROCESSORS: usize = 64;

/// A setup that is refused.
#[derive(Debug)]
pub enum SetupError {
    /// The number of processors is less than two, or more than [`MAX_PROCESSORS`].
    Processors(usize),
    /// The number of blinds is 0 or more than [`MAX_BLINDS`].
    Blinds(u64),
    /// A policy tests or changes bits behind the header string.
    Width {
        /// Its index.
        policy: usize,
        /// n.
        header_bits: usize,
    },
    /// The system has no random numbers.
    Random(RandomError),
}

impl Display for SetupError {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        match self {
            SetupError::Processors(count @ ..2) => write!(
                f,
                "{count} processors: at least 2 are needed, as the only share of an action would be \
                 the action itself"
            ),
            SetupError::Processors(count) => {
                write!(f, "{count} processors: at most {MAX_PROCESSORS} are possible")
            }
            SetupError::Blinds(count) => {
                write!(f, "{count} blinds: an epoch has from 1 to {MAX_BLINDS}")
            }
            SetupError::Width { policy, header_bits } => {
                let policy = policy + 1;
                write!(f, "policy {policy} is about bits behind the first {header_bits}")
            }
            SetupError::Random(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SetupError {}

impl From<RandomError> for SetupError {
    fn from(error: RandomError) -> SetupError {
        SetupError::Random(error)
    }
}

/// The client's part of a setup, from which the parts of all others are made (paper, algorithm
/// Global Setup).
pub struct Setup {
    options: SetupOptions,
    function: Arc<PrivateFunction>,
    matches: Vec<Ternary>,
    /// By processor, then by action.
    shares: Vec<Arc<[ActionShare]>>,
    blind_key: Key,
    hash_key: Key,
}

impl Setup {
    /// Draws keys and shares for a network function.
    ///
    /// # Errors
    /// The options or a policy are outside of what is possible, or the system has no random numbers.
    pub fn new(function: &NetworkFunction, options: SetupOptions) -> Result<Setup, SetupError> {
        let SetupOptions { processors, header_bits, blinds, .. } = options;
        if !(2..=MAX_PROCESSORS).contains(&processors) {
            return Err(SetupError::Processors(processors));
        }
        if !(1..=MAX_BLINDS).contains(&blinds) {
            return Err(SetupError::Blinds(blinds));
        }
        let within = Bits::first(header_bits);
        let is_outside = |string: &Ternary| string.projection().overlaps(&!within);
        let policies = function.policies();
        let outside =
            policies.iter().position(|it| is_outside(&it.condition) || is_outside(&it.action));
        if let Some(policy) = outside {
            return Err(SetupError::Width { policy, header_bits });
        }
        let mut shares = vec![Vec::with_capacity(policies.len()); processors];
        for policy in policies {
            let own = share::split(&policy.action, processors, within)?;
            shares.iter_mut().zip(own).for_each(|(all, share)| all.push(share));
        }
        let (function, matches) = PrivateFunction::new(function);
        Ok(Setup {
            options,
            function: function.into(),
            matches,
            shares: shares.into_iter().map(Into::into).collect(),
            blind_key: Key::random()?,
            hash_key: Key::random()?,
        })
    }

    /// The entry for an epoch.
    pub fn entry(&self, epoch: u64) -> Entry {
        Entry {
            stream: BlindStream::new(&self.blind_key, epoch),
            within: Bits::first(self.options.header_bits),
            blinds: self.options.blinds,
            counter: 0,
        }
    }

    /// The rows of an epoch, for all processors.
    pub fn rows(&self, epoch: u64) -> EpochRows {
        let secrets = EpochSecrets { blinds: &self.blind_key, hash: &self.hash_key };
        let SetupOptions { hash, blinds, .. } = self.options;
        EpochRows::new(&self.function, &self.matches, secrets, hash, epoch, blinds)
    }

    /// The processors for an epoch.
    pub fn processors(&self, rows: Arc<EpochRows>) -> Vec<Processor> {
        let processor = |shares: &Arc<[ActionShare]>| Processor {
            function: self.function.clone(),
            shares: shares.clone(),
            rows: rows.clone(),
            found: Vec::new(),
        };
        self.shares.iter().map(processor).collect()
    }

    /// The client for an epoch.
    pub fn client(&self, epoch: u64) -> Client {
        Client {
            stream: BlindStream::new(&self.blind_key, epoch),
            within: Bits::first(self.options.header_bits),
            processors: self.options.processors,
            blinds: self.options.blinds,
        }
    }
}

impl std::fmt::Debug for Setup {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.debug_struct("Setup").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A blinded header string, for the processors and for the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlindedHeader {
    /// Number of the packet in its epoch.
    pub counter: u64,
    /// The header string and the blind, by exclusive or.
    pub header: Bits,
}

/// The middlebox A, which knows the packets and nothing of the policy.
#[derive(Debug)]
pub struct Entry {
    stream: BlindStream,
    within: Bits,
    blinds: u64,
    counter: u64,
}

impl Entry {
    /// Blinds the header string of the next packet (paper, algorithm Split Packet).
    pub fn split(&mut self, header: Bits) -> BlindedHeader {
        let counter = self.counter;
        self.counter += 1;
        let blind = self.stream.blind(counter % self.blinds);
        BlindedHeader { counter, header: (header ^ blind) & self.within }
    }
}

/// A middlebox B(j), which knows projections, blinded header strings and its shares of the actions.
#[derive(Clone, Debug)]
pub struct Processor {
    function: Arc<PrivateFunction>,
    shares: Arc<[ActionShare]>,
    rows: Arc<EpochRows>,
    /// Scratch buffer of the traversal.
    found: Vec<Option<Option<MatchId>>>,
}

impl Processor {
    /// The processor's share of the result for a packet: each projection is hashed once, and all
    /// matches of the projection are looked up at once.
    pub fn process(&mut self, packet: &BlindedHeader) -> ActionShare {
        let Processor { function, shares, rows, found } = self;
        let blind = packet.counter % rows.blinds();
        let mut sum = ActionShare::ZERO;
        function.traverse_by_projections(
            found,
            |at| rows.find(blind, (at, &function.projections()[at]), packet.header),
            |action| sum = sum.plus(&shares[action as usize]),
        );
        sum
    }

    /// The same as the paper has it: a hash for each match that is tried (algorithms Private
    /// Traversal, Compute Match and Compute Action).
    pub fn process_each_match(&self, packet: &BlindedHeader) -> ActionShare {
        let Processor { function, shares, rows, .. } = self;
        let blind = packet.counter % rows.blinds();
        let mut sum = ActionShare::ZERO;
        function.traverse(
            |id| {
                let at = function.matches()[id as usize];
                rows.is_match(blind, id, (at, &function.projections()[at]), packet.header)
            },
            |action| sum = sum.plus(&shares[action as usize]),
        );
        sum
    }
}

/// The middlebox C, which knows everything.
#[derive(Debug)]
pub struct Client {
    stream: BlindStream,
    within: Bits,
    processors: usize,
    blinds: u64,
}

impl Client {
    /// The result of the function for a packet, from the entry's part and from one share of each
    /// processor (paper, algorithm Merge Shares); `None` unless there are as many shares as
    /// processors.
    pub fn merge(&mut self, packet: &BlindedHeader, shares: &[ActionShare]) -> Option<Bits> {
        if shares.len() != self.processors {
            return None;
        }
        let blind = self.stream.blind(packet.counter % self.blinds) & self.within;
        let sum = shares.iter().fold(ActionShare::ZERO, |sum, share| sum.plus(share));
        Some(sum.apply(packet.header ^ blind))
    }
}

#[cfg(test)]
mod tests;
