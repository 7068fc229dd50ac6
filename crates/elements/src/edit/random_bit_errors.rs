//! `RandomBitErrors`: changes bits at random.

use castanet_element::prelude::*;
use castanet_kit::bit_errors::BitErrors;

/// Simulates bit errors: changes each bit of each packet with a given probability.
///
/// After a `RandomSeed`, the same bits change as in Click.
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
///
/// ```click
/// RandomSeed(5); in -> RandomBitErrors(0.05) -> out
/// > in  hex 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
/// < out hex 00 00 09 00 00 00 00 00 08 00 05 00 00 00 00 00 00 00 00 00
/// ```
#[derive(Clone, Element)]
#[element(room = "edit", args = RandomBitErrorsArgs, methods)]
pub struct RandomBitErrors {
    p: f64,
    errors: BitErrors,
    kind: ErrorKind,
    /// Whether to change bits.
    #[arg(live)]
    active: bool,
}

#[derive(Args)]
pub struct RandomBitErrorsArgs {
    /// The probability of an error in a bit, from 0 to 1.
    #[arg(range = 0.0..=1.0)]
    p: f64,
    /// The change of a bit in error: `flip`, `set` or `clear`.
    #[arg(default = ErrorKind::Flip, shown = "flip")]
    kind: ErrorKind,
    /// Whether to change bits.
    #[arg(default = true)]
    active: bool,
}

/// The argument KIND: `flip`, `set` or `clear`.
#[derive(Clone, Copy)]
pub enum ErrorKind {
    Flip,
    Set,
    Clear,
}

impl ErrorKind {
    fn word(self) -> &'static str {
        match self {
            ErrorKind::Flip => "flip",
            ErrorKind::Set => "set",
            ErrorKind::Clear => "clear",
        }
    }
}

impl FromArg for ErrorKind {
    const SYNTAX: &'static str = "flip, set or clear";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let known = [ErrorKind::Flip, ErrorKind::Set, ErrorKind::Clear].into_iter();
        let wrong = || ArgError::new(format!("`{text}` is not {}", Self::SYNTAX));
        known
            .into_iter()
            .find(|kind| text.eq_ignore_ascii_case(kind.word()))
            .ok_or_else(|| wrong().click("bad action `KIND'; expected `set', `clear', or `flip'"))
    }
}

impl Build for RandomBitErrors {
    type Args = RandomBitErrorsArgs;

    fn build(args: RandomBitErrorsArgs, setup: &Setup) -> Result<Self, ArgError> {
        let RandomBitErrorsArgs { p, kind, active } = args;
        if p == 0.0 {
            (setup.warn)("zero bit error probability (underflow?)".into());
        }
        Ok(RandomBitErrors { p, errors: BitErrors::new(p), kind, active })
    }
}

#[handlers]
impl RandomBitErrors {
    /// The probability of an error in a bit.
    #[read]
    fn p_bit_error(&self) -> f64 {
        self.p
    }
    /// Sets the probability of an error in a bit, from 0 to 1.
    #[write(p_bit_error)]
    fn set_p_bit_error(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        let p = castanet_element::args::within(text, names, &(0.0..=1.0), "a probability")?;
        Ok(RandomBitErrors { p, errors: BitErrors::new(p), ..self.clone() })
    }
    /// The change of a bit in error.
    #[read]
    fn error_kind(&self) -> &'static str {
        self.kind.word()
    }
    /// Sets the change of a bit in error: `flip`, `set` or `clear`.
    #[write(error_kind)]
    fn set_error_kind(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        Ok(RandomBitErrors { kind: ErrorKind::from_arg(text, names)?, ..self.clone() })
    }
}

impl PerBatch for RandomBitErrors {
    type On = on::Any;
    type Local = ();
    type Fate = ();

    fn batch(&self, _: &mut (), _: usize, mut batch: Batch, cx: &mut Cx) {
        if self.active && self.errors.may_change() {
            for packet in &mut batch {
                let change: fn(&mut u8, u8) = match self.kind {
                    ErrorKind::Flip => |byte, bit| *byte ^= bit,
                    ErrorKind::Set => |byte, bit| *byte |= bit,
                    ErrorKind::Clear => |byte, bit| *byte &= !bit,
                };
                let random = || cx.random_numbers().number();
                self.errors.apply(packet.bytes_mut(), change, random);
            }
        }
        cx.emit_batch((), batch);
    }
}
