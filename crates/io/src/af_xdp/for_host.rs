//! Which packets the host goes on receiving: patterns, as code that the kernel runs on each packet.

use super::code::{
    Code, IF_IS, IF_IS_NOT, IF_MORE, IF_WORD_AT_MOST, IF_WORD_IS, Label, R1, Register,
};
use crate::sys::xdp::{self, XDP_PASS};
use castanet_kit::classify::{Base, Branch, Pattern, Rule, Steps, Test};
use castanet_wire::{Ethernet, Vlan, ether_type};
use std::io;

/// How far into a packet the code can look: what the kernel has of it in one piece.
const DEPTH: usize = 2048;

/// Packets that are chosen for the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForHost {
    /// Answers for packets that are chosen, and goes on behind its end with
    /// all others, the context in `R1` again.
    code: Vec<u64>,
}

impl ForHost {
    /// Frames that look like `frames`, and IPv4 packets, with a VLAN tag or
    /// without, that look like `ip`. Says what is wrong if the patterns ask
    /// for more than such code can do.
    pub fn new(frames: Option<&Pattern>, ip: Option<&Pattern>) -> Result<ForHost, String> {
        let steps = |pattern: &Pattern| Steps::compile(&[Rule::new(pattern.clone(), Some(0))]);
        let (frames, ip) = (frames.map(steps), ip.map(steps));
        let deepest = [&frames, &ip].into_iter().flatten().flat_map(Steps::iter);
        let deepest = deepest.map(|step| usize::from(step.test.needs())).max().unwrap_or(0);
        if deepest > DEPTH {
            return Err(format!("it looks at byte {deepest}, and not more than {DEPTH} will do"));
        }
        let code = translate(frames.as_ref(), ip.as_ref());
        let code =
            code.ok_or_else(|| "it has too many tests, or leaves nothing to receive".to_owned())?;
        Ok(ForHost { code })
    }

    /// Whether a frame is chosen, as the kernel says; it takes the privileges
    /// that receiving takes.
    pub fn chooses(&self, frame: &[u8]) -> io::Result<bool> {
        xdp::passes(&self.code, frame)
    }

    /// The code: see the field.
    pub(super) fn code(&self) -> &[u64] {
        &self.code
    }
}

// What registers hold all the time.
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
struct Ends {
    chosen: Label,
    other: Label,
}

fn translate(frames: Option<&Steps>, ip: Option<&Steps>) -> Option<Vec<u64>> {
    let mut code = Code::default();
    let (chosen, other) = (code.label(), code.label());
    code.copy(CONTEXT, R1);
    // `data` and `data_end` of struct xdp_md.
    code.load_word(DATA, R1, 0);
    code.load_word(END, R1, 4);
    if let Some(frames) = frames {
        let not_here = code.label();
        run(&mut code, frames, 0, Ends { chosen, other: not_here });
        code.here(not_here);
    }
    if let Some(ip) = ip {
        let ends = Ends { chosen, other };
        let untagged = code.label();
        find_ip(&mut code, untagged, other);
        run_ip(&mut code, ip, Ethernet::LEN + Vlan::LEN, ends);
        code.here(untagged);
        run_ip(&mut code, ip, Ethernet::LEN, ends);
    }
    code.jump(other);
    code.here(chosen);
    code.answer(XDP_PASS);
    code.here(other);
    code.copy(R1, CONTEXT);
    code.finish()
}

/// Goes on where there is an IPv4 packet behind a VLAN tag, to `untagged`
/// where there is one without, and to `other` where there is none.
fn find_ip(code: &mut Code, untagged: Label, other: Label) {
    let [ipv4, vlan] = [ether_type::IPV4, ether_type::VLAN].map(u32::from);
    let at = |end: usize| end as i16 - 2;
    need(code, DATA, Ethernet::LEN, other);
    code.load_big_half(B, DATA, at(Ethernet::LEN));
    code.jump_if(IF_IS, B, 0, ipv4, untagged);
    code.jump_if(IF_IS_NOT, B, 0, vlan, other);
    need(code, DATA, Ethernet::LEN + Vlan::LEN, other);
    code.load_big_half(B, DATA, at(Ethernet::LEN + Vlan::LEN));
    code.jump_if(IF_IS_NOT, B, 0, ipv4, other);
}

/// Goes to `short` where there are not `bytes` bytes from `from` on.
fn need(code: &mut Code, from: Register, bytes: usize, short: Label) {
    code.copy(A, from);
    code.add(A, bytes as i32);
    code.jump_if(IF_MORE, A, END, 0, short);
}

/// Runs a program of IP patterns on a packet whose network header is `network`
/// bytes from its beginning.
fn run_ip(code: &mut Code, steps: &Steps, network: usize, ends: Ends) {
    need(code, DATA, network + 1, ends.other);
    // The header length of RFC 791 counts words.
    code.load_byte(TRANSPORT, DATA, network as i16);
    code.and_word(TRANSPORT, 0x0f);
    code.shift_left(TRANSPORT, 2);
    code.add_register(TRANSPORT, DATA);
    code.add(TRANSPORT, network as i32);
    run(code, steps, network, ends);
}

/// Runs a program, test by test. Branches only lead forward, as the kernel wants it.
fn run(code: &mut Code, steps: &Steps, network: usize, ends: Ends) {
    let labels: Vec<Label> = steps.iter().map(|_| code.label()).collect();
    let lead = |next| match next {
        Branch::Step(step) => labels[step],
        Branch::Output(_) => ends.chosen,
        Branch::Drop => ends.other,
    };
    code.jump(lead(steps.start()));
    for (step, label) in steps.iter().zip(&labels) {
        code.here(*label);
        test(code, &step.test, network, lead(step.yes), lead(step.short));
        code.jump(lead(step.no));
    }
}

/// Goes to `yes` where the test holds, to `short` where it finds too few bytes.
fn test(code: &mut Code, test: &Test, network: usize, yes: Label, short: Label) {
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
    need(code, base, (at + last) as usize, short);
    if last - first == 4 {
        code.load_big_word(B, base, at);
    } else {
        code.set(B, 0);
        for byte in first..last {
            code.load_byte(C, base, at + byte);
            code.shift_left(B, 8);
            code.or(B, C);
        }
        code.shift_left(B, 8 * (4 - i32::from(last)));
    }
    code.and_word(B, test.mask);
    if test.is_equality() {
        code.jump_if(IF_WORD_IS, B, 0, test.lo, yes);
    } else {
        code.subtract_word(B, test.lo);
        code.jump_if(IF_WORD_AT_MOST, B, 0, test.hi - test.lo, yes);
    }
}
