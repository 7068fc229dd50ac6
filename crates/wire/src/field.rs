//! Macros that declare header types: from the length, and per field a sentence, a name, an
//! offset and a type, they generate getters, setters and offset constants.

use crate::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A type of header fields, which are stored in network byte order.
pub(crate) trait Field: Sized {
    /// Reads the value at offset `at`.
    fn load<const N: usize>(bytes: &[u8; N], at: usize) -> Self;
    /// Writes the value at offset `at`.
    fn store<const N: usize>(self, bytes: &mut [u8; N], at: usize);
}

/// Implements [`Field`] for types that convert to and from `[u8; LEN]`.
macro_rules! field {
    ($($type:ty, $len:literal, $from:expr, $to:expr;)*) => {$(
        impl Field for $type {
            #[inline(always)]
            fn load<const N: usize>(bytes: &[u8; N], at: usize) -> Self {
                let mut raw = [0; $len];
                raw.copy_from_slice(&bytes[at..at + $len]);
                $from(raw)
            }
            #[inline(always)]
            fn store<const N: usize>(self, bytes: &mut [u8; N], at: usize) {
                bytes[at..at + $len].copy_from_slice(&$to(self));
            }
        }
    )*};
}

field! {
    u8, 1, u8::from_be_bytes, u8::to_be_bytes;
    u16, 2, u16::from_be_bytes, u16::to_be_bytes;
    u32, 4, u32::from_be_bytes, u32::to_be_bytes;
    u64, 8, u64::from_be_bytes, u64::to_be_bytes;
    Ipv4Addr, 4, Ipv4Addr::from, |a: Ipv4Addr| a.octets();
    Ipv6Addr, 16, Ipv6Addr::from, |a: Ipv6Addr| a.octets();
    MacAddr, 6, MacAddr, |a: MacAddr| a.0;
}

/// Declares a header type over `[u8; LEN]` with the given plain fields.
macro_rules! header {
    (
        $(#[$meta:meta])*
        $name:ident [$len:literal] {
            $($(#[$doc:meta])* $get:ident, $set:ident: $type:ty = $at:ident @ $offset:literal;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        #[derive(
            zerocopy::FromBytes,
            zerocopy::IntoBytes,
            zerocopy::Unaligned,
            zerocopy::KnownLayout,
            zerocopy::Immutable,
        )]
        #[repr(transparent)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// Length of the header in bytes, without options.
            pub const LEN: usize = $len;

            $(
                #[doc = concat!("Offset of `", stringify!($get), "`.")]
                pub const $at: usize = $offset;
            )*

            /// Views the start of `bytes` as this header, and returns it and the bytes
            /// behind it; `None` if `bytes` is too short.
            #[inline(always)]
            pub fn from_prefix(bytes: &[u8]) -> Option<(&Self, &[u8])> {
                // Six instructions less than zerocopy's `ref_from_prefix`, at each look at a header.
                let (header, rest) = bytes.split_first_chunk()?;
                Some((Self::from_array(header), rest))
            }

            /// As [`from_prefix`](Self::from_prefix), mutably.
            #[inline(always)]
            pub fn from_prefix_mut(bytes: &mut [u8]) -> Option<(&mut Self, &mut [u8])> {
                let (header, rest) = bytes.split_first_chunk_mut()?;
                Some((Self::from_array_mut(header), rest))
            }

            /// Views exactly these bytes as this header.
            #[inline(always)]
            pub fn from_array(bytes: &[u8; $len]) -> &Self {
                zerocopy::transmute_ref!(bytes)
            }

            /// As [`from_array`](Self::from_array), mutably.
            #[inline(always)]
            pub fn from_array_mut(bytes: &mut [u8; $len]) -> &mut Self {
                zerocopy::transmute_mut!(bytes)
            }

            /// The header's bytes.
            #[inline(always)]
            pub fn bytes(&self) -> &[u8; $len] {
                &self.0
            }

            $(
                $(#[$doc])*
                #[inline(always)]
                pub fn $get(&self) -> $type {
                    crate::field::Field::load(&self.0, Self::$at)
                }

                #[doc = concat!("Sets [`", stringify!($get), "`](Self::", stringify!($get), ") and nothing else.")]
                #[inline(always)]
                pub fn $set(&mut self, value: $type) {
                    crate::field::Field::store(value, &mut self.0, Self::$at);
                }
            )*
        }
    };
}

/// Declares methods that set a field of a header and update the header's checksum.
macro_rules! rewrite {
    ($header:ident {
        $($rewrite:ident: $type:ty = $get:ident, $set:ident, $word:ident;)*
    }) => {
        impl $header {$(
            #[doc = concat!("Sets [`", stringify!($get), "`](Self::", stringify!($get), ") and updates the checksum.")]
            #[inline]
            pub fn $rewrite(&mut self, value: $type) {
                let delta = Delta::new().$word(self.$get().into(), value.into());
                self.$set(value);
                self.adjust_checksum(delta);
            }
        )*}
    };
}
