//! The exits of the elements.

use crate::datagram::DatagramError;
use crate::epochs::RowsRefusal;
use crate::replay::Freshness;
use castanet_element::fate::{DROP, Fate, FateKind, FateSpec};

/// A reason to drop a packet. All three elements have the same names for the same reasons.
enum Reason {
    Malformed,
    Foreign,
    Forged,
    Replayed,
    Old,
    NoEpoch,
    NotIp,
    Cut,
    Policy,
    Dummy,
    Incomplete,
}

impl Reason {
    const fn spec(self) -> FateSpec {
        let (name, doc) = match self {
            Reason::Malformed => {
                ("malformed", "Datagrams that are cut short, or of an unknown version or kind.")
            }
            Reason::Foreign => ("foreign", "Datagrams of another setup or link."),
            Reason::Forged => {
                ("forged", "Datagrams that are forged, changed, or sealed with another key.")
            }
            Reason::Replayed => ("replayed", "Datagrams that came already."),
            Reason::Old => (
                "old",
                "Datagrams older than the window of counters, the session or all epochs, or of a packet that was given up.",
            ),
            Reason::NoEpoch => {
                ("no_epoch", "Packets and datagrams for which the party has no epoch.")
            }
            Reason::NotIp => ("not_ip", "Packets without an IP header."),
            Reason::Cut => ("cut", "Packets whose headers are cut short."),
            Reason::Policy => ("policy", "Packets that the network function drops."),
            Reason::Dummy => ("dummy", "Dummy packets of the entry."),
            Reason::Incomplete => {
                ("incomplete", "Packets of which a share or a part did not come in time.")
            }
        };
        FateSpec { name, doc, kind: FateKind::Drop }
    }
}

/// Declares the exits of an element: its outputs, and its reasons to drop.
macro_rules! exits {
    ($(#[$doc:meta])* $name:ident { $($reason:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            /// Output `n`.
            Out(u8),
            $(
                #[doc = concat!("Dropped: `", stringify!($reason), "`.")]
                $reason,
            )*
        }

        impl Fate for $name {
            const FATES: &'static [FateSpec] = &[$(Reason::$reason.spec()),*];
            const OPEN: bool = true;
            #[inline]
            fn index(self) -> u8 {
                if let $name::Out(port) = self {
                    return port;
                }
                let reasons = [$($name::$reason),*];
                let at = reasons.iter().position(|&it| it == self).unwrap_or_default();
                DROP - at as u8
            }
        }

        impl From<DatagramError> for $name {
            fn from(error: DatagramError) -> $name {
                match error {
                    DatagramError::Truncated | DatagramError::Version(_) | DatagramError::Kind => {
                        $name::Malformed
                    }
                    DatagramError::Setup | DatagramError::Link => $name::Foreign,
                    DatagramError::Tag => $name::Forged,
                }
            }
        }

        impl From<Freshness> for $name {
            fn from(freshness: Freshness) -> $name {
                match freshness {
                    Freshness::Old => $name::Old,
                    Freshness::New | Freshness::Replayed => $name::Replayed,
                }
            }
        }
    };
}

exits! {
    /// The exits of the entry.
    EntryExit { Malformed, Foreign, Forged, Replayed, Old, NoEpoch, NotIp, Cut }
}

exits! {
    /// The exits of a processor.
    ProcessorExit { Malformed, Foreign, Forged, Replayed, Old, NoEpoch }
}

exits! {
    /// The exits of the client.
    ClientExit {
        Malformed, Foreign, Forged, Replayed, Old, NoEpoch, Policy, Dummy, Incomplete,
    }
}

impl From<RowsRefusal> for ProcessorExit {
    fn from(refusal: RowsRefusal) -> ProcessorExit {
        match refusal {
            RowsRefusal::Foreign => ProcessorExit::Foreign,
            RowsRefusal::Forged => ProcessorExit::Forged,
            RowsRefusal::Replayed => ProcessorExit::Replayed,
            RowsRefusal::Old => ProcessorExit::Old,
            RowsRefusal::Malformed => ProcessorExit::Malformed,
        }
    }
}
