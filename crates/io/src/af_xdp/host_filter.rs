//! Compiles patterns of packets that stay with the host into eBPF code, which the kernel runs on
//! each packet.

use crate::assembler::{
    Assembler, IF_IS, IF_IS_NOT, IF_MORE, IF_WORD_AT_MOST, IF_WORD_IS, Label, R1, Register,
};
use crate::sys::xdp::{self, XDP_PASS};
use castanet_kit::classify::{Base, Branch, Pattern, Rule, Steps, Test};
use castanet_wire::{Ethernet, Vlan, ether_type};
use std::io;

/// How far into a packet the code can look: what the kernel has of it in one piece.
const MAX_DEPTH: usize = 2048;

/// A filter for packets that the XDP program leaves to the host's own stack.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostFilter {
    /// Answers for packets that are chosen, and goes on behind its end with
    /// all others, the context in `R1` again.
    code: Vec<u64>,
}

impl HostFilter {
    /// Frames that look like `frames`, and IPv4 packets, with a VLAN tag or
    /// without, that look like `ip`. Says what is wrong if the patterns ask
    /// for more than such code can do.
    pub fn new(frames: Option<&Pattern>, ip: Option<&Pattern>) -> Result<HostFilter, String> {
        let steps = |pattern: &Pattern| Steps::compile(&[Rule::new(pattern.clone(), Some(0))]);
        let (frames, ip) = (frames.map(steps), ip.map(steps));
        let deepest = [&frames, &ip].into_iter().flatten().flat_map(Steps::iter);
        let deepest = deepest.map(|step| usize::from(step.test.needs())).max().unwrap_or(0);
        if deepest > MAX_DEPTH {
            return Err(format!(
                "it looks at byte {deepest}, and not more than {MAX_DEPTH} will do"
            ));
        }
        let code = compile(frames.as_ref(), ip.as_ref());
        let code =
            code.ok_or_else(|| "it has too many tests, or leaves nothing to receive".to_owned())?;
        Ok(HostFilter { code })
    }

    /// Whether a frame is chosen, as the kernel says; it takes the privileges
    /// that receiving takes.
    pub fn matches(&self, frame: &[u8]) -> io::Result<bool> {
        xdp::passes(&self.code, frame)
    }

    /// The code: see the field.
    pub(super) fn code(&self) -> &[u64] {
        &self.code
    }
}

// Registers with a fixed purpose in the whole program.
const CONTEXT: Register = 6;
const END: Register = 7;
const DATA: Register = 8;
const TRANSPORT: Register = 9;
// And for a moment.
const A: Register = 2;
const B: Register = 3;
const C: Register = 4;

/// Where packets go in the end.
#[derive(Clone, Copy)]
struct Targets {
    matched: Label,
    other: Label,
}

fn compile(frames: Option<&Steps>, ip: Option<&Steps>) -> Option<Vec<u64>> {
    let mut asm = Assembler::default();
    let (matched, other) = (asm.label(), asm.label());
    asm.copy(CONTEXT, R1);
    // `data` and `data_end` of struct xdp_md.
    asm.load_word(DATA, R1, 0);
    asm.load_word(END, R1, 4);
    if let Some(frames) = frames {
        let not_here = asm.label();
        compile_steps(&mut asm, frames, 0, Targets { matched, other: not_here });
        asm.place(not_here);
    }
    if let Some(ip) = ip {
        let targets = Targets { matched, other };
        let untagged = asm.label();
        locate_ip(&mut asm, untagged, other);
        compile_ip(&mut asm, ip, Ethernet::LEN + Vlan::LEN, targets);
        asm.place(untagged);
        compile_ip(&mut asm, ip, Ethernet::LEN, targets);
    }
    asm.jump(other);
    asm.place(matched);
    asm.return_constant(XDP_PASS);
    asm.place(other);
    asm.copy(R1, CONTEXT);
    asm.assemble()
}

/// Goes on where there is an IPv4 packet behind a VLAN tag, to `untagged`
/// where there is one without, and to `other` where there is none.
fn locate_ip(asm: &mut Assembler, untagged: Label, other: Label) {
    let [ipv4, vlan] = [ether_type::IPV4, ether_type::VLAN].map(u32::from);
    let at = |end: usize| end as i16 - 2;
    require(asm, DATA, Ethernet::LEN, other);
    asm.load_big_half(B, DATA, at(Ethernet::LEN));
    asm.jump_if(IF_IS, B, 0, ipv4, untagged);
    asm.jump_if(IF_IS_NOT, B, 0, vlan, other);
    require(asm, DATA, Ethernet::LEN + Vlan::LEN, other);
    asm.load_big_half(B, DATA, at(Ethernet::LEN + Vlan::LEN));
    asm.jump_if(IF_IS_NOT, B, 0, ipv4, other);
}

/// Goes to `short` where there are not `bytes` bytes from `from` on.
fn require(asm: &mut Assembler, from: Register, bytes: usize, short: Label) {
    asm.copy(A, from);
    asm.add(A, bytes as i32);
    asm.jump_if(IF_MORE, A, END, 0, short);
}

/// Runs a program of IP patterns on a packet whose network header is `network`
/// bytes from its beginning.
fn compile_ip(asm: &mut Assembler, steps: &Steps, network: usize, targets: Targets) {
    require(asm, DATA, network + 1, targets.other);
    // The header length of RFC 791 counts words.
    asm.load_byte(TRANSPORT, DATA, network as i16);
    asm.and_word(TRANSPORT, 0x0f);
    asm.shift_left(TRANSPORT, 2);
    asm.add_register(TRANSPORT, DATA);
    asm.add(TRANSPORT, network as i32);
    compile_steps(asm, steps, network, targets);
}

/// Runs a program, test by test. Branches only lead forward, as the kernel wants it.
fn compile_steps(asm: &mut Assembler, steps: &Steps, network: usize, targets: Targets) {
    let labels: Vec<Label> = steps.iter().map(|_| asm.label()).collect();
    let label_of = |next| match next {
        Branch::Step(step) => labels[step],
        Branch::Output(_) => targets.matched,
        Branch::Drop => targets.other,
    };
    asm.jump(label_of(steps.start()));
    for (step, label) in steps.iter().zip(&labels) {
        asm.place(*label);
        compile_test(asm, &step.test, network, label_of(step.yes), label_of(step.short));
        asm.jump(label_of(step.no));
    }
}

/// Goes to `yes` where the test holds, to `short` where it finds too few bytes.
fn compile_test(asm: &mut Assembler, test: &Test, network: usize, yes: Label, short: Label) {
    let (base, start) = match test.base {
        Base::Packet => (DATA, 0),
        // Counted from two bytes before the header.
        Base::Link => (DATA, -2),
        Base::Network => (DATA, network as i16),
        Base::Transport => (TRANSPORT, 0),
    };
    // No more bytes than matter: the others may not be there.
    let first = (test.mask.leading_zeros() / 8).min(3) as i16;
    let last = i16::max(4 - (test.mask.trailing_zeros() / 8) as i16, first + 1);
    let at = start + test.offset as i16;
    require(asm, base, (at + last) as usize, short);
    if last - first == 4 {
        asm.load_big_word(B, base, at);
    } else {
        asm.set(B, 0);
        for byte in first..last {
            asm.load_byte(C, base, at + byte);
            asm.shift_left(B, 8);
            asm.or(B, C);
        }
        asm.shift_left(B, 8 * (4 - i32::from(last)));
    }
    asm.and_word(B, test.mask);
    if test.is_equality() {
        asm.jump_if(IF_WORD_IS, B, 0, test.lo, yes);
    } else {
        asm.subtract_word(B, test.lo);
        asm.jump_if(IF_WORD_AT_MOST, B, 0, test.hi - test.lo, yes);
    }
}
