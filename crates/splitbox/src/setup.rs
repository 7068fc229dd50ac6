//! The setup of a network function: what each party of it has (paper, figure 21).

use crate::bits::{Bits, HEADER_BITS, Ternary};
use crate::digest::HashKind;
use crate::epoch::{EpochRows, EpochSecrets, TooLarge};
use crate::function::NetworkFunction;
use crate::party::{Client, Entry, Processor};
use crate::private::PrivateFunction;
use crate::secret::{Key, MAX_BLINDS, RandomError, fill_random};
use crate::share::{self, ActionShare};
use std::fmt::{Display, Formatter};
use std::sync::Arc;

/// How often a blind of an epoch is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlindUse {
    /// Again and again, as in the paper.
    #[default]
    Again,
    /// Once; then the entry goes on with the next epoch.
    Once,
}

/// The sizes and choices of a setup, which all parties know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetupOptions {
    /// t: the number of processors.
    pub processors: usize,
    /// ℍ.
    pub hash: HashKind,
    /// n: the bits of a header string that the function is applied to, a multiple of eight.
    pub header_bits: usize,
    /// l: the blinds of an epoch.
    pub blinds: u64,
    /// How often a blind is used.
    pub blind_use: BlindUse,
    /// Number of lanes: workers of the entry that count their packets separately. Each lane has an equal
    /// part of the blinds of an epoch.
    pub lanes: usize,
    /// Whether processors do the same work for each packet, whatever it matches.
    pub has_constant_work: bool,
}

/// The maximum number of processors.
pub const MAX_PROCESSORS: usize = 64;
/// The maximum number of lanes.
pub const MAX_LANES: usize = 64;
/// The packets in which dummies are counted.
const MILLION: u32 = 1_000_000;

/// A setup that is refused.
#[derive(Debug)]
pub enum SetupError {
    /// The number of processors is less than two, or more than [`MAX_PROCESSORS`].
    Processors(usize),
    /// The number of lanes is 0 or more than [`MAX_LANES`].
    Lanes(usize),
    /// The number of blinds is less than that of lanes, or more than [`MAX_BLINDS`].
    Blinds(u64),
    /// The number of bits is no multiple of eight, or more than a header string has.
    HeaderBits(usize),
    /// A policy tests or changes bits behind the header string.
    Width {
        /// Its index.
        policy: usize,
        /// n.
        header_bits: usize,
    },
    /// The dummy packets in a million packets are no less than a million.
    Dummies(u32),
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
            SetupError::Lanes(count) => write!(f, "{count} lanes: there are 1 to {MAX_LANES}"),
            SetupError::Blinds(count) => write!(
                f,
                "{count} blinds: an epoch has at least one for each lane, and at most {MAX_BLINDS}"
            ),
            SetupError::HeaderBits(count) => {
                write!(
                    f,
                    "{count} bits of a header string: n is a multiple of 8, at most {HEADER_BITS}"
                )
            }
            SetupError::Width { policy, header_bits } => {
                let policy = policy + 1;
                write!(f, "policy {policy} is about bits behind the first {header_bits}")
            }
            SetupError::Dummies(count) => {
                write!(f, "{count} dummies in a million packets: fewer than {MILLION} are possible")
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

/// What all parties of a setup know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetupInfo {
    /// A random number, which tells datagrams and files of different setups apart.
    pub id: u32,
    /// Sizes and choices.
    pub options: SetupOptions,
}

/// What the entry has.
#[derive(Clone, Debug)]
pub struct EntryParty {
    /// The setup.
    pub info: SetupInfo,
    /// The key of the blinds.
    pub blind_key: Key,
    /// The key of the source hash in header strings.
    pub source_key: Key,
    /// Dummy packets in a million packets.
    pub dummies_per_million: u32,
    /// The secret of the link to the client.
    pub client_secret: Key,
    /// The secrets of the links to the processors.
    pub processor_secrets: Vec<Key>,
}

/// What a processor has.
#[derive(Clone, Debug)]
pub struct ProcessorParty {
    /// The setup.
    pub info: SetupInfo,
    /// Index of the processor, from 0.
    pub number: u8,
    /// The tree of numbered matches and actions, and the projections.
    pub function: Arc<PrivateFunction>,
    /// By action: the processor's share of it.
    pub shares: Arc<[ActionShare]>,
    /// The key of ℍ.
    pub hash_key: Key,
    /// The secret of the link from the entry.
    pub entry_secret: Key,
    /// The secret of the link to the client.
    pub client_secret: Key,
}

/// What the client has.
#[derive(Clone)]
pub struct ClientParty {
    /// The setup.
    pub info: SetupInfo,
    /// The function.
    pub function: NetworkFunction,
    /// The key of the blinds.
    pub blind_key: Key,
    /// The key of ℍ.
    pub hash_key: Key,
    /// Dummy packets in a million packets.
    pub dummies_per_million: u32,
    /// The secret of the link from the entry.
    pub entry_secret: Key,
    /// The secrets of the links from the processors.
    pub processor_secrets: Vec<Key>,
}

impl std::fmt::Debug for ClientParty {
    /// Without the function, which is secret too.
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        f.debug_struct("ClientParty").field("info", &self.info).finish_non_exhaustive()
    }
}

/// All parties of a setup (paper, algorithm Global Setup).
#[derive(Clone, Debug)]
pub struct Setup {
    /// A.
    pub entry: EntryParty,
    /// B(1..t).
    pub processors: Vec<ProcessorParty>,
    /// C.
    pub client: ClientParty,
}

impl Setup {
    /// Draws keys and shares for a network function.
    ///
    /// # Errors
    /// The options or a policy are outside of what is possible, or the system has no random numbers.
    pub fn new(function: &NetworkFunction, options: SetupOptions) -> Result<Setup, SetupError> {
        options.check()?;
        let SetupOptions { processors: count, header_bits, .. } = options;
        check_width(function, header_bits)?;
        let within = Bits::first(header_bits);
        let policies = function.policies();
        let mut shares = vec![Vec::with_capacity(policies.len()); count];
        for policy in policies {
            let own = share::split(&policy.action, count, within)?;
            shares.iter_mut().zip(own).for_each(|(all, share)| all.push(share));
        }
        let mut id = [0; 4];
        fill_random(&mut id)?;
        let info = SetupInfo { id: u32::from_be_bytes(id), options };
        let (blind_key, hash_key, client_secret) = (Key::random()?, Key::random()?, Key::random()?);
        let secrets = || (0..count).map(|_| Key::random()).collect::<Result<Vec<Key>, _>>();
        let (from_entry, to_client) = (secrets()?, secrets()?);
        let private: Arc<PrivateFunction> = PrivateFunction::new(function).0.into();
        let links = from_entry.iter().zip(&to_client).zip(shares);
        let processor =
            |(number, ((entry_secret, client_secret), shares)): (usize, ((&Key, &Key), Vec<_>))| {
                ProcessorParty {
                    info,
                    number: number as u8,
                    function: private.clone(),
                    shares: shares.into(),
                    hash_key: hash_key.clone(),
                    entry_secret: entry_secret.clone(),
                    client_secret: client_secret.clone(),
                }
            };
        Ok(Setup {
            processors: links.enumerate().map(processor).collect(),
            client: ClientParty {
                info,
                function: function.clone(),
                blind_key: blind_key.clone(),
                hash_key: hash_key.clone(),
                dummies_per_million: 0,
                entry_secret: client_secret.clone(),
                processor_secrets: to_client.clone(),
            },
            entry: EntryParty {
                info,
                blind_key,
                source_key: Key::random()?,
                dummies_per_million: 0,
                client_secret,
                processor_secrets: from_entry.clone(),
            },
        })
    }

    /// The same setup, whose entry sends so many dummy packets in a million packets.
    ///
    /// # Errors
    /// There would be no other packets.
    pub fn with_dummies(mut self, per_million: u32) -> Result<Setup, SetupError> {
        check_dummies(per_million)?;
        self.entry.dummies_per_million = per_million;
        self.client.dummies_per_million = per_million;
        Ok(self)
    }

    /// The rows of an epoch, for all processors.
    ///
    /// # Errors
    /// There is not as much memory.
    pub fn rows(&self, epoch: u64) -> Result<EpochRows, TooLarge> {
        let ClientParty { info, function, blind_key, hash_key, .. } = &self.client;
        let (function, matches) = PrivateFunction::new(function);
        let secrets = EpochSecrets { blinds: blind_key, hash: hash_key };
        let SetupOptions { hash, blinds, .. } = info.options;
        EpochRows::new(&function, &matches, secrets, hash, epoch, blinds)
    }

    /// The first lane of the entry for an epoch.
    pub fn entry(&self, epoch: u64) -> Entry {
        Entry::new(&self.entry, 0, epoch)
    }

    /// The processors for an epoch.
    pub fn processors(&self, rows: &Arc<EpochRows>) -> Vec<Processor> {
        self.processors.iter().map(|it| Processor::new(it, rows.clone())).collect()
    }

    /// The client for an epoch.
    pub fn client(&self, epoch: u64) -> Client {
        Client::new(&self.client, epoch)
    }
}

impl SetupOptions {
    /// Whether sizes are within their limits.
    ///
    /// # Errors
    /// The first size that is not.
    pub fn check(&self) -> Result<(), SetupError> {
        let &SetupOptions { processors, header_bits, blinds, lanes, .. } = self;
        if !(2..=MAX_PROCESSORS).contains(&processors) {
            return Err(SetupError::Processors(processors));
        }
        if !(1..=MAX_LANES).contains(&lanes) {
            return Err(SetupError::Lanes(lanes));
        }
        if !(lanes as u64..=MAX_BLINDS).contains(&blinds) {
            return Err(SetupError::Blinds(blinds));
        }
        if !header_bits.is_multiple_of(8) || !(8..=HEADER_BITS).contains(&header_bits) {
            return Err(SetupError::HeaderBits(header_bits));
        }
        Ok(())
    }
}

/// Whether a function is about the first `header_bits` bits of header strings alone.
pub(crate) fn check_width(
    function: &NetworkFunction,
    header_bits: usize,
) -> Result<(), SetupError> {
    let within = Bits::first(header_bits);
    let is_outside = |string: &Ternary| string.projection().overlaps(&!within);
    let mut policies = function.policies().iter();
    match policies.position(|it| is_outside(&it.condition) || is_outside(&it.action)) {
        Some(policy) => Err(SetupError::Width { policy, header_bits }),
        None => Ok(()),
    }
}

/// Whether a share of dummy packets leaves room for others.
pub(crate) fn check_dummies(per_million: u32) -> Result<(), SetupError> {
    match per_million < MILLION {
        true => Ok(()),
        false => Err(SetupError::Dummies(per_million)),
    }
}
