//! `SetIPECN`: sets the ECN codepoint of IPv4 packets.

use castanet_element::prelude::*;

/// Sets the ECN codepoint of IPv4 packets.
///
/// The codepoint is the lower two bits of the type of service (RFC 3168): `no` (0), `ECT(1)` (1), `ECT(0)`
/// (2) or `CE` (3). The differentiated services code point in the upper bits stays as it is. The element
/// updates the header checksum.
///
/// ```click
/// in -> e :: SetIPECN(ECT(0)) -> out
/// > in  1.0.0.1 > 2.0.0.2 udp tos 185
/// < out 1.0.0.1 > 2.0.0.2 udp tos 186
/// = e.ecn ECT(0)
/// ! e.ecn ce
/// = e.ecn ce
/// > in  1.0.0.1 > 2.0.0.2 udp tos 184
/// < out 1.0.0.1 > 2.0.0.2 udp tos 187
/// ```
#[derive(Clone, Element)]
#[element(room = "ip")]
pub struct SetIPECN {
    /// Codepoint: 0 to 3, or `no` (`-`), `ECT(1)` (`ect1`), `ECT(0)` (`ect2`) or `CE` (`ce`).
    #[arg(live)]
    ecn: Codepoint,
}

/// The words of each codepoint.
const WORDS: [&[&str]; 4] =
    [&["0", "no", "-"], &["1", "ECT(1)", "ect1"], &["2", "ECT(0)", "ect2"], &["3", "CE", "ce"]];

/// An ECN codepoint, and the word for it that was written.
#[derive(Clone, Copy)]
pub struct Codepoint(u8, &'static str);

impl FromArg for Codepoint {
    const SYNTAX: &'static str = "0 to 3, no, ECT(1), ECT(0) or CE";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let words =
            WORDS.iter().zip(0..).flat_map(|(words, code)| words.iter().map(move |it| (it, code)));
        let mut found = words.filter(|(word, _)| **word == text);
        found.next().map(|(word, code)| Codepoint(code, word)).ok_or_else(|| {
            ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click("bad ECN argument")
                .unplaced()
        })
    }
}

impl From<Codepoint> for Value {
    fn from(codepoint: Codepoint) -> Value {
        codepoint.1.into()
    }
}

impl PerPacket for SetIPECN {
    type On = on::Ipv4;
    type Local = ();
    type Fate = ();

    #[inline]
    fn packet(&self, (): &mut (), mut ip: Ipv4) {
        ip.rewrite_ecn(self.ecn.0);
    }
}
