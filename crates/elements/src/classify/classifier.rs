//! `Classifier`: chooses the output by patterns of bytes.

use super::{lent_words, warn_of_unused};
use castanet_element::packet::WordTest;
use castanet_element::prelude::*;
use castanet_kit::classify::{ClickProgram, Pattern, Program, Rule, word};

/// Classifies packets by patterns of their bytes; the first match selects the output.
///
/// A pattern consists of clauses `OFFSET/VALUE` or `OFFSET/VALUE%MASK`, all of which must match.
/// `?` stands for any hexadecimal digit, `!` in front of a clause negates it, and the pattern `-`
/// matches every packet. There is one pattern per output.
///
/// ```click
/// in -> c :: Classifier(12/0806 20/0001, 12/08??, 0/01%01 !12/86dd) -> arp
/// c[1] -> ip;  c[2] -> group
/// > in    eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.1 tell 1.0.0.2 0:0:0:0:0:1
/// > in    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// > in    hex 01 00 5e 00 00 01 00 00 00 00 00 01 88 cc
/// > in    hex 00 00 5e 00 00 01 00 00 00 00 00 01 88 cc
/// < arp   eth 0:0:0:0:0:1 > ff:ff:ff:ff:ff:ff arp who-has 1.0.0.1 tell 1.0.0.2 0:0:0:0:0:1
/// < ip    eth 0:0:0:0:0:1 > 0:0:0:0:0:2 1.0.0.1 > 2.0.0.2 udp
/// < group hex 01 00 5e 00 00 01 00 00 00 00 00 01 88 cc
/// = c.drops.unmatched 1
/// ```
///
/// ```click
/// in -> c :: Classifier(-) -> out
/// > in  hex 01
/// < out hex 01
/// = c.matcher tests: 0 of them are too few for a table
/// = c.program all->[0]\nsafe length 0\nalignment offset 0
/// ```
///
/// ```click
/// in -> c :: Classifier
/// > in  hex 01
/// = c.drops.unmatched 1
/// ```
#[derive(Element)]
#[element(room = "classify", args = ClassifierArgs, methods, ports = "1/-")]
pub struct Classifier {
    patterns: Vec<String>,
    /// The words of Click's program begin so many bytes before the packet.
    alignment: u8,
    program: Program,
    /// By output: the test that decides alone.
    sufficient: Vec<WordTest>,
}

#[derive(Args)]
pub struct ClassifierArgs {
    /// One pattern per output, in order.
    #[arg(rest)]
    patterns: Vec<String>,
}

impl Build for Classifier {
    type Args = ClassifierArgs;

    fn build(args: ClassifierArgs, setup: &Setup) -> Result<Self, ArgError> {
        let (patterns, outputs) = (args.patterns.len(), setup.outputs);
        if patterns != outputs {
            return Err(ArgError::new(format!("patterns: {patterns}, outputs: {outputs}"))
                .click(format!("need {outputs} arguments, one per output port"))
                .help("each output has one pattern; `-` is every packet"));
        }
        let rule = |(slot, text): (usize, &String)| {
            let output = Port::new(slot).and_then(Port::number).and_then(|n| u8::try_from(n).ok());
            let pattern = Pattern::bytes(text).map_err(|e| {
                let error = ArgError::new(e.message).at(format_args!("pattern {slot}"));
                e.help.map_or(error.clone(), |help| error.help(help))
            })?;
            Ok(Rule::new(pattern, output))
        };
        let rules = ArgError::all(args.patterns.iter().enumerate().map(rule))?;
        let program = Program::compile(&rules);
        warn_of_unused(&program, setup);
        // Click compares words at addresses that are multiples of 4, if it knows the packets' addresses.
        let alignment = match setup.alignment {
            Some((4.., remainder)) => (remainder as u8).wrapping_neg() % 4,
            _ => 0,
        };
        let sufficient = (0..=u8::MAX).take(outputs).map(|output| {
            let test = program.sufficient_test(output);
            test.map_or(WordTest::NONE, |test| WordTest::new(test.offset, test.mask, test.value))
        });
        let sufficient = sufficient.collect();
        Ok(Classifier { patterns: args.patterns, alignment, program, sufficient })
    }
}

#[handlers]
impl Classifier {
    /// The program that Click makes of the patterns, one test a line; `matcher` tells what packets go
    /// through here.
    #[read]
    fn program(&self) -> String {
        let program = ClickProgram::of_byte_patterns(&self.patterns, self.alignment);
        // The texts are patterns, as `build` has found.
        program.map_or_else(|error| error.to_string(), |program| program.to_string())
    }
    /// Whether packets are matched by tests or looked up in a table, and why.
    #[read]
    fn matcher(&self) -> String {
        self.program.matcher()
    }
}

impl PerPacket for Classifier {
    type On = on::Any;
    type Local = ();
    type Fate = Port;
    const DECIDES_BURSTS: bool = true;
    const HAS_SUFFICIENT_TESTS: bool = true;
    const BYTE_ACCESS: ByteAccess = ByteAccess::Reads;

    #[inline]
    fn decide_burst(&self, _: &mut (), packets: &mut [Packet], fates: &mut [u8]) -> bool {
        // Outputs are the indices of fates: `Port::known`.
        self.program.outputs_of_bytes(packets.iter().map(Packet::bytes), fates);
        true
    }

    fn byte_length(&self) -> Option<usize> {
        self.program.length()
    }

    #[inline]
    fn handle_bytes(&self, _: &mut (), bytes: &mut BurstBytes, fates: &mut [u8]) -> u8 {
        lent_words::outputs_of_bytes(&self.program, self.sufficient_test(0), bytes, fates)
    }

    #[inline]
    fn sufficient_test(&self, output: u8) -> WordTest {
        self.sufficient.get(usize::from(output)).copied().unwrap_or(WordTest::NONE)
    }

    #[inline(always)]
    fn packet(&self, _: &mut (), packet: &mut Packet) -> Port {
        Port::known(self.program.output_of_bytes(packet.bytes()))
    }

    fn native(&self) -> Option<String> {
        let native = self.program.native()?;
        Some(format!("element.output(packet, {}, |packet| {})", native.packet, native.expression))
    }
}

impl Classifier {
    /// The output of a packet, by `tests` of its big-endian words if it has `length` bytes.
    #[inline(always)]
    pub fn output(
        &self,
        packet: &Packet,
        length: usize,
        tests: impl FnOnce(&dyn Fn(usize) -> u32) -> u8,
    ) -> Port {
        let bytes = packet.bytes();
        if bytes.len() < length {
            return self.short(packet);
        }
        Port::known(tests(&|at| word(bytes, at)))
    }

    /// The output of a packet that is shorter than the tests need.
    #[cold]
    #[inline(never)]
    fn short(&self, packet: &Packet) -> Port {
        Port::known(self.program.output_of_bytes(packet.bytes()))
    }
}
