//! `RandomBitErrors`: a bad line.

use castanet_engine::prelude::*;
use castanet_kit::rng::flip_bits;

/// Changes each bit of each packet with some probability.
///
/// ```click
/// in -> e :: RandomBitErrors(1) -> out
/// > in  hex 01 02 ff
/// < out hex fe fd 00
/// ! e.error_kind set
/// = e.error_kind set
/// > in  hex 01 02 ff
/// < out hex ff ff ff
/// ! e.error_kind clear
/// > in  hex 01 02 ff
/// < out hex 00 00 00
/// ! e.p_bit_error 0
/// = e.p_bit_error 0
/// > in  hex 01 02 ff
/// < out hex 01 02 ff
/// ! e.p_bit_error 1
/// ! e.active false
/// > in  hex 01 02 ff
/// < out hex 01 02 ff
/// = e.active false
/// ```
#[derive(Clone, Element)]
#[element(room = "edit", args = Wishes, methods)]
pub struct RandomBitErrors {
    p: f64,
    kind: Kind,
    /// Whether to change anything.
    #[arg(live)]
    active: bool,
}

#[derive(Args)]
pub struct Wishes {
    /// The probability that a bit changes.
    #[arg(range = 0.0..=1.0)]
    p: f64,
    /// What becomes of such a bit.
    #[arg(default = Kind::Flip)]
    kind: Kind,
    /// Whether to change anything.
    #[arg(default = true)]
    active: bool,
}

/// `flip`, `set` or `clear`.
#[derive(Clone, Copy)]
pub enum Kind {
    Flip,
    Set,
    Clear,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Flip => "flip",
            Kind::Set => "set",
            Kind::Clear => "clear",
        }
    }
}

impl FromArg for Kind {
    const SYNTAX: &'static str = "flip, set or clear";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let known = [Kind::Flip, Kind::Set, Kind::Clear].into_iter();
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        known
            .into_iter()
            .find(|kind| text.eq_ignore_ascii_case(kind.word()))
            .ok_or_else(|| wrong().click("bad action `KIND'; expected `set', `clear', or `flip'"))
    }
}

impl Build for RandomBitErrors {
    type Args = Wishes;

    fn build(args: Wishes, _: &Setup) -> Result<Self, ArgError> {
        Ok(RandomBitErrors { p: args.p, kind: args.kind, active: args.active })
    }
}

#[handlers]
impl RandomBitErrors {
    /// The probability that a bit changes.
    #[read]
    fn p_bit_error(&self) -> f64 {
        self.p
    }
    /// Changes the probability that a bit changes.
    #[write(p_bit_error)]
    fn set_p_bit_error(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let p = castanet_engine::args::within(text, names, &(0.0..=1.0), "a probability")?;
        Ok(RandomBitErrors { p, ..self.clone() })
    }
    /// What becomes of such a bit.
    #[read]
    fn error_kind(&self) -> &'static str {
        self.kind.word()
    }
    /// Changes what becomes of such a bit.
    #[write(error_kind)]
    fn set_error_kind(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomBitErrors { kind: Kind::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerBatch for RandomBitErrors {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        if self.active && self.p > 0.0 {
            for packet in &mut batch {
                let change: fn(&mut u8, u8) = match self.kind {
                    Kind::Flip => |byte, bit| *byte ^= bit,
                    Kind::Set => |byte, bit| *byte |= bit,
                    Kind::Clear => |byte, bit| *byte &= !bit,
                };
                flip_bits(packet.bytes_mut(), self.p, change, || cx.random());
            }
        }
        cx.emit_batch((), batch);
    }
}
