//! The sealed contents of party files.
//!
//! These types are the format of version 1, by postcard; those of the parties may change without it.

use super::list::List;
use crate::bits::{Bits, HEADER_BITS, HEADER_BYTES, Ternary};
use crate::digest::HashKind;
use crate::function::{NetworkFunction, Node, Policy};
use crate::private::{PrivateFunction, PrivateNode};
use crate::secret::{KEY_BYTES, Key};
use crate::setup::{
    BlindUse, ClientParty, EntryParty, MAX_PROCESSORS, ProcessorParty, SetupInfo, SetupOptions,
    check_dummies, check_width,
};
use crate::share::ActionShare;
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Maximum number of policies, of matches and of projections.
const MAX_POLICIES: usize = 1 << 20;
/// Maximum number of nodes.
const MAX_NODES: usize = 1 << 21;

/// A message about contents that make no sense.
pub(super) type ContentError = String;

fn message(error: impl std::fmt::Display) -> ContentError {
    error.to_string()
}

#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
struct KeyBytes([u8; KEY_BYTES]);

impl From<&Key> for KeyBytes {
    fn from(key: &Key) -> KeyBytes {
        KeyBytes(*key.expose())
    }
}

impl From<&KeyBytes> for Key {
    fn from(key: &KeyBytes) -> Key {
        Key::from_bytes(key.0)
    }
}

type KeyList = List<KeyBytes, MAX_PROCESSORS>;

/// One key for each processor.
fn keys(list: &KeyList, info: &SetupInfo) -> Result<Vec<Key>, ContentError> {
    match list.0.len() == info.options.processors {
        true => Ok(list.0.iter().map(Key::from).collect()),
        false => Err(format!("{} links to {} processors", list.0.len(), info.options.processors)),
    }
}

fn key_list(keys: &[Key]) -> KeyList {
    List(keys.iter().map(KeyBytes::from).collect())
}

/// A string of bits, in two halves, as serde has arrays of up to 32 elements.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct BitsBytes([u8; HEADER_BYTES / 2], [u8; HEADER_BYTES / 2]);

impl From<Bits> for BitsBytes {
    fn from(bits: Bits) -> BitsBytes {
        let half = |from: usize| std::array::from_fn(|at| bits.0[from + at]);
        BitsBytes(half(0), half(HEADER_BYTES / 2))
    }
}

impl From<BitsBytes> for Bits {
    fn from(BitsBytes(first, second): BitsBytes) -> Bits {
        let mut bits = Bits::ZERO;
        bits.0.iter_mut().zip(first.iter().chain(&second)).for_each(|(to, from)| *to = *from);
        bits
    }
}

#[derive(Serialize, Deserialize)]
struct OptionsBody {
    is_sha1: bool,
    header_bits: u16,
    blinds: u64,
    uses_blinds_once: bool,
    lanes: u16,
    has_constant_work: bool,
}

impl OptionsBody {
    fn new(options: &SetupOptions) -> OptionsBody {
        let &SetupOptions { processors: _, hash, header_bits, blinds, blind_use, .. } = options;
        OptionsBody {
            is_sha1: hash == HashKind::Sha1,
            header_bits: header_bits as u16,
            blinds,
            uses_blinds_once: blind_use == BlindUse::Once,
            lanes: options.lanes as u16,
            has_constant_work: options.has_constant_work,
        }
    }

    fn info(&self, id: u32, processors: usize) -> Result<SetupInfo, ContentError> {
        let options = SetupOptions {
            processors,
            hash: if self.is_sha1 { HashKind::Sha1 } else { HashKind::Blake3 },
            header_bits: self.header_bits.into(),
            blinds: self.blinds,
            blind_use: if self.uses_blinds_once { BlindUse::Once } else { BlindUse::Again },
            lanes: self.lanes.into(),
            has_constant_work: self.has_constant_work,
        };
        options.check().map_err(message)?;
        Ok(SetupInfo { id, options })
    }
}

/// A node of a tree; `test` is that which packets are compared with, and its consequence.
#[derive(Serialize, Deserialize)]
enum NodeBody<T> {
    Leaf,
    Match { test: T, matched: u32, otherwise: u32 },
}

/// The contents of the file of a party: a clear part of it says of which setup, with how many
/// processors.
pub(super) trait Body: Serialize + for<'de> Deserialize<'de> {
    /// The party.
    type Party;

    /// The contents for a party.
    fn new(party: &Self::Party) -> Self;

    /// The party, if the contents are within their limits. `number` is that of a processor.
    fn party(self, id: u32, processors: usize, number: u8) -> Result<Self::Party, ContentError>;
}

#[derive(Serialize, Deserialize)]
pub(super) struct EntryBody {
    options: OptionsBody,
    blind_key: KeyBytes,
    source_key: KeyBytes,
    dummies_per_million: u32,
    client_secret: KeyBytes,
    processor_secrets: KeyList,
}

impl Body for EntryBody {
    type Party = EntryParty;

    fn new(party: &EntryParty) -> EntryBody {
        EntryBody {
            options: OptionsBody::new(&party.info.options),
            blind_key: (&party.blind_key).into(),
            source_key: (&party.source_key).into(),
            dummies_per_million: party.dummies_per_million,
            client_secret: (&party.client_secret).into(),
            processor_secrets: key_list(&party.processor_secrets),
        }
    }

    fn party(self, id: u32, processors: usize, _: u8) -> Result<EntryParty, ContentError> {
        let info = self.options.info(id, processors)?;
        check_dummies(self.dummies_per_million).map_err(message)?;
        Ok(EntryParty {
            info,
            blind_key: (&self.blind_key).into(),
            source_key: (&self.source_key).into(),
            dummies_per_million: self.dummies_per_million,
            client_secret: (&self.client_secret).into(),
            processor_secrets: keys(&self.processor_secrets, &info)?,
        })
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ProcessorBody {
    options: OptionsBody,
    hash_key: KeyBytes,
    entry_secret: KeyBytes,
    client_secret: KeyBytes,
    projections: List<BitsBytes, MAX_POLICIES>,
    /// By match: the index of its projection.
    matches: List<u32, MAX_POLICIES>,
    /// The match and the action of each node.
    nodes: List<NodeBody<(u32, u32)>, MAX_NODES>,
    /// By action: value and projection of the share.
    shares: List<(BitsBytes, BitsBytes), MAX_POLICIES>,
}

impl Body for ProcessorBody {
    type Party = ProcessorParty;

    fn new(party: &ProcessorParty) -> ProcessorBody {
        let node = |node: &PrivateNode| match *node {
            PrivateNode::Leaf => NodeBody::Leaf,
            PrivateNode::Match { id, action, matched, otherwise } => NodeBody::Match {
                test: (id, action),
                matched: matched as u32,
                otherwise: otherwise as u32,
            },
        };
        let function = &party.function;
        let share = |share: &ActionShare| (share.value.into(), share.projection.into());
        ProcessorBody {
            options: OptionsBody::new(&party.info.options),
            hash_key: (&party.hash_key).into(),
            entry_secret: (&party.entry_secret).into(),
            client_secret: (&party.client_secret).into(),
            projections: List(function.projections().iter().map(|&it| it.into()).collect()),
            matches: List(function.matches().iter().map(|&it| it as u32).collect()),
            nodes: List(function.nodes().iter().map(node).collect()),
            shares: List(party.shares.iter().map(share).collect()),
        }
    }

    fn party(self, id: u32, processors: usize, number: u8) -> Result<ProcessorParty, ContentError> {
        let info = self.options.info(id, processors)?;
        let outside = !Bits::first(info.options.header_bits);
        let share = |&(value, projection): &(BitsBytes, BitsBytes)| ActionShare {
            value: value.into(),
            projection: projection.into(),
        };
        let shares: Vec<ActionShare> = self.shares.0.iter().map(share).collect();
        let projections: Vec<Bits> = self.projections.0.iter().map(|&it| it.into()).collect();
        let all = shares.iter().map(|it| it.value | it.projection).chain(projections.clone());
        if all.into_iter().any(|bits| bits.overlaps(&outside)) {
            return Err("a share or a projection has bits behind the header string".to_owned());
        }
        let mut nodes = Vec::with_capacity(self.nodes.0.len());
        for node in &self.nodes.0 {
            nodes.push(match *node {
                NodeBody::Leaf => PrivateNode::Leaf,
                NodeBody::Match { test: (_, action), .. } if action as usize >= shares.len() => {
                    return Err(format!("there is no share of action {action}"));
                }
                NodeBody::Match { test: (id, action), matched, otherwise } => PrivateNode::Match {
                    id,
                    action,
                    matched: matched as usize,
                    otherwise: otherwise as usize,
                },
            });
        }
        let matches = self.matches.0.iter().map(|&it| it as usize).collect();
        let function = PrivateFunction::from_parts(projections, matches, nodes).map_err(message)?;
        Ok(ProcessorParty {
            info,
            number,
            function: function.into(),
            shares: shares.into(),
            hash_key: (&self.hash_key).into(),
            entry_secret: (&self.entry_secret).into(),
            client_secret: (&self.client_secret).into(),
        })
    }
}

/// The value and the projection of a match or an action.
#[derive(Serialize, Deserialize)]
struct TernaryBody(BitsBytes, BitsBytes);

impl From<&Ternary> for TernaryBody {
    fn from(string: &Ternary) -> TernaryBody {
        TernaryBody(string.value().into(), string.projection().into())
    }
}

impl From<&TernaryBody> for Ternary {
    fn from(string: &TernaryBody) -> Ternary {
        Ternary::new(string.0.into(), string.1.into())
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct ClientBody {
    options: OptionsBody,
    blind_key: KeyBytes,
    hash_key: KeyBytes,
    dummies_per_million: u32,
    entry_secret: KeyBytes,
    processor_secrets: KeyList,
    /// Match and action.
    policies: List<(TernaryBody, TernaryBody), MAX_POLICIES>,
    /// The policy of each node.
    nodes: List<NodeBody<u32>, MAX_NODES>,
}

impl Body for ClientBody {
    type Party = ClientParty;

    fn new(party: &ClientParty) -> ClientBody {
        let node = |node: &Node| match *node {
            Node::Leaf => NodeBody::Leaf,
            Node::Match { policy, matched, otherwise } => NodeBody::Match {
                test: policy as u32,
                matched: matched as u32,
                otherwise: otherwise as u32,
            },
        };
        let policy = |policy: &Policy| ((&policy.condition).into(), (&policy.action).into());
        ClientBody {
            options: OptionsBody::new(&party.info.options),
            blind_key: (&party.blind_key).into(),
            hash_key: (&party.hash_key).into(),
            dummies_per_million: party.dummies_per_million,
            entry_secret: (&party.entry_secret).into(),
            processor_secrets: key_list(&party.processor_secrets),
            policies: List(party.function.policies().iter().map(policy).collect()),
            nodes: List(party.function.nodes().iter().map(node).collect()),
        }
    }

    fn party(self, id: u32, processors: usize, _: u8) -> Result<ClientParty, ContentError> {
        let info = self.options.info(id, processors)?;
        check_dummies(self.dummies_per_million).map_err(message)?;
        let node = |node: &NodeBody<u32>| match *node {
            NodeBody::Leaf => Node::Leaf,
            NodeBody::Match { test, matched, otherwise } => Node::Match {
                policy: test as usize,
                matched: matched as usize,
                otherwise: otherwise as usize,
            },
        };
        let policy = |(condition, action): &(TernaryBody, TernaryBody)| Policy {
            condition: condition.into(),
            action: action.into(),
        };
        let policies = self.policies.0.iter().map(policy).collect();
        let nodes = self.nodes.0.iter().map(node).collect();
        let function = NetworkFunction::new(policies, nodes).map_err(message)?;
        check_width(&function, info.options.header_bits).map_err(message)?;
        Ok(ClientParty {
            info,
            function,
            blind_key: (&self.blind_key).into(),
            hash_key: (&self.hash_key).into(),
            dummies_per_million: self.dummies_per_million,
            entry_secret: (&self.entry_secret).into(),
            processor_secrets: keys(&self.processor_secrets, &info)?,
        })
    }
}

const _: () = assert!(HEADER_BITS < 1 << 16, "n fits into its field");
