//! Modules for Castanet's `WasmElement` in Rust: `no_std`, without dependencies, for Rust 1.63 and later.
//!
//! A module is a type that implements [`Element`], and one call of [`module!`]. `docs/wasm.md` of
//! Castanet describes the interface, and `sdk/wasm/examples` has modules.
//!
//! ```ignore
//! #![no_std]
//! #![no_main]
//! use castanet_wasm_sdk::{module, Element, Packet, Verdict};
//!
//! struct EvenLengths;
//!
//! impl Element for EvenLengths {
//!     const REASONS: &'static [(&'static str, &'static str)] =
//!         &[("odd_length\0", "Packets of an odd length.\0")];
//!     fn configure(_: &str) -> Result<Self, &'static str> {
//!         Ok(EvenLengths)
//!     }
//!     fn packet(&mut self, packet: &mut Packet) -> Verdict {
//!         if packet.len() % 2 == 0 { Verdict::Output(0) } else { Verdict::Drop(0) }
//!     }
//! }
//!
//! module!(EvenLengths, snap: 0, headroom: 0, batch: 64);
//! ```
#![no_std]

/// The version of the interface.
pub const ABI_VERSION: i32 = 1;

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// By this output.
    Output(u16),
    /// It is dropped for this reason of [`Element::REASONS`].
    Drop(u16),
}

/// The work of a module. One instance of it is made for each worker.
pub trait Element: Sized {
    /// Reasons to drop, at most 7: a name of lower-case letters, digits and `_`, and a sentence, each
    /// with `\0` behind it.
    const REASONS: &'static [(&'static str, &'static str)] = &[];
    /// Names of counters, each with `\0` behind it; their values are those of [`count`].
    const COUNTERS: &'static [&'static str] = &[];
    /// Names of handlers, each with `\0` behind it, and whether they are read and written.
    const HANDLERS: &'static [(&'static str, Access)] = &[];

    /// Makes the element of its configuration, an argument a line.
    ///
    /// # Errors
    /// A message about a configuration that cannot be used.
    fn configure(configuration: &str) -> Result<Self, &'static str>;

    /// Decides about a packet.
    fn packet(&mut self, packet: &mut Packet) -> Verdict;

    /// Takes another configuration and keeps the state.
    ///
    /// # Errors
    /// As [`Element::configure`].
    fn update(&mut self, configuration: &str) -> Result<(), &'static str> {
        *self = Self::configure(configuration)?;
        Ok(())
    }

    /// Writes the value of handler `n` of [`Element::HANDLERS`].
    fn read(&self, _n: usize, _out: &mut Text) {}

    /// Takes a value for handler `n`.
    ///
    /// # Errors
    /// A message about a value that cannot be used.
    fn write(&mut self, _n: usize, _value: &str) -> Result<(), &'static str> {
        Ok(())
    }
}

/// Access to a handler.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Access {
    /// It is read.
    Read = 1,
    /// It is written to.
    Write = 2,
    /// Both.
    ReadWrite = 3,
}

/// A packet as Castanet has laid it out: behind it lie its headroom and its first bytes.
#[doc(hidden)]
#[repr(C)]
pub struct Descriptor {
    length: u32,
    data: u16,
    network: u16,
    verdict: u16,
    dirty_from: u16,
    dirty_to: u16,
    paint: u8,
    input: u8,
}

/// Annotations of a packet, for modules that ask for them.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Annotations {
    destination: [u8; 4],
    reserved: u32,
    timestamp: u64,
}

/// Annotations of no packet.
#[doc(hidden)]
pub const NO_ANNOTATIONS: Annotations =
    Annotations { destination: [0; 4], reserved: 0, timestamp: 0 };

/// A packet of the batch.
pub struct Packet<'a> {
    descriptor: &'a mut Descriptor,
    /// Bytes of the slot, which begins with the descriptor.
    stride: usize,
    annotations: Option<&'a mut Annotations>,
}

impl<'a> Packet<'a> {
    /// The packet in the slot at an address.
    ///
    /// # Safety
    /// `stride` bytes from `slot` on are the slot of a packet that Castanet has copied in.
    #[doc(hidden)]
    #[inline(always)]
    pub unsafe fn at(
        slot: *mut u8,
        stride: usize,
        annotations: Option<&'a mut Annotations>,
    ) -> Packet<'a> {
        Packet { descriptor: &mut *(slot as *mut Descriptor), stride, annotations }
    }

    /// Address of the first byte.
    #[inline(always)]
    fn start(&self) -> usize {
        (self.descriptor as *const Descriptor as usize) + usize::from(self.descriptor.data)
    }

    /// How many bytes are here.
    #[inline(always)]
    fn visible(&self) -> usize {
        let room = self.stride - usize::from(self.descriptor.data);
        if self.len() < room { self.len() } else { room }
    }

    /// Length of the packet in bytes, of which [`Packet::bytes`] may have the first only.
    #[inline]
    pub fn len(&self) -> usize {
        self.descriptor.length as usize
    }

    /// Whether the packet has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.descriptor.length == 0
    }

    /// The first bytes of the packet: all, or as many as the module asks for.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: Castanet and the methods of this type keep the bytes within the packet's slot.
        unsafe { core::slice::from_raw_parts(self.start() as *const u8, self.visible()) }
    }

    /// Bytes `from` up to before `from + N`, to be changed; `None` if they are not all here. Castanet takes
    /// over what was borrowed so.
    #[inline]
    pub fn change<const N: usize>(&mut self, from: usize) -> Option<&mut [u8; N]> {
        if from > self.visible() || N > self.visible() - from {
            return None;
        }
        self.mark(from as u16, (from + N) as u16);
        // SAFETY: as in `bytes`, and the range is visible.
        Some(unsafe { &mut *((self.start() + from) as *mut [u8; N]) })
    }

    /// Adds bytes to those that Castanet takes over.
    #[inline]
    fn mark(&mut self, from: u16, to: u16) {
        let it = &mut *self.descriptor;
        if it.dirty_from == it.dirty_to {
            it.dirty_from = from;
            it.dirty_to = to;
        } else {
            it.dirty_from = it.dirty_from.min(from);
            it.dirty_to = it.dirty_to.max(to);
        }
    }

    /// Offset of the network header, if it is marked and lies in the packet.
    #[inline]
    pub fn network(&self) -> Option<usize> {
        match self.descriptor.network {
            u16::MAX => None,
            at => Some(at.into()),
        }
    }

    /// Removes `n` bytes from the front; `false` if so many are not here.
    #[inline]
    pub fn pull(&mut self, n: u16) -> bool {
        if usize::from(n) > self.visible() {
            return false;
        }
        let it = &mut *self.descriptor;
        it.data += n;
        it.length -= u32::from(n);
        it.dirty_from = it.dirty_from.saturating_sub(n);
        it.dirty_to = it.dirty_to.saturating_sub(n);
        it.network = it.network.checked_sub(n).unwrap_or(u16::MAX);
        true
    }

    /// Adds bytes at the front; `false` if there is no headroom for them.
    #[inline]
    pub fn push<const N: usize>(&mut self, bytes: [u8; N]) -> bool {
        let headroom = usize::from(self.descriptor.data) - core::mem::size_of::<Descriptor>();
        if N > headroom {
            return false;
        }
        let n = N as u16;
        let it = &mut *self.descriptor;
        let dirty_to = if it.dirty_from == it.dirty_to { 0 } else { it.dirty_to };
        it.data -= n;
        it.length += u32::from(n);
        if it.network != u16::MAX {
            it.network += n;
        }
        it.dirty_from = 0;
        it.dirty_to = dirty_to + n;
        // SAFETY: the headroom before the first byte has room for them.
        unsafe { *(self.start() as *mut [u8; N]) = bytes };
        true
    }

    /// Shortens the packet to `length` bytes.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        if length < self.len() {
            self.descriptor.length = length as u32;
            let visible = self.visible() as u16;
            let it = &mut *self.descriptor;
            it.dirty_to = it.dirty_to.min(visible);
            it.dirty_from = it.dirty_from.min(it.dirty_to);
        }
    }

    /// The input on which the packet came.
    #[inline]
    pub fn input(&self) -> u8 {
        self.descriptor.input
    }

    /// The paint annotation.
    #[inline]
    pub fn paint(&self) -> u8 {
        self.descriptor.paint
    }

    /// Sets the paint annotation.
    #[inline]
    pub fn set_paint(&mut self, paint: u8) {
        self.descriptor.paint = paint;
    }

    /// The destination annotation, the next hop of an IPv4 packet, if the module asks for annotations.
    #[inline]
    pub fn destination(&self) -> Option<[u8; 4]> {
        self.annotations.as_ref().map(|it| it.destination)
    }

    /// Sets the destination annotation, if the module asks for annotations.
    #[inline]
    pub fn set_destination(&mut self, address: [u8; 4]) {
        if let Some(it) = &mut self.annotations {
            it.destination = address;
        }
    }

    /// Nanoseconds since 1970 at which the packet was received, if the module asks for annotations.
    #[inline]
    pub fn timestamp(&self) -> Option<u64> {
        self.annotations.as_ref().map(|it| it.timestamp)
    }

    /// Sets where the packet goes.
    #[doc(hidden)]
    #[inline(always)]
    pub fn decide(&mut self, verdict: Verdict) {
        self.descriptor.verdict = match verdict {
            Verdict::Output(n) => n & 0x7fff,
            Verdict::Drop(n) => 0x8000 | n,
        };
    }
}

/// Text that a handler answers; what does not fit is lost.
pub struct Text<'a> {
    buffer: &'a mut [u8],
    length: usize,
}

impl<'a> Text<'a> {
    #[doc(hidden)]
    pub fn new(buffer: &'a mut [u8]) -> Text<'a> {
        Text { buffer, length: 0 }
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        text.bytes().for_each(|byte| self.byte(byte));
        self
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) -> &mut Self {
        let (mut digits, mut n, mut rest) = ([0; 20], 0, number);
        loop {
            digits[n] = b'0' + (rest % 10) as u8;
            n += 1;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        digits[..n].iter().rev().for_each(|digit| self.byte(*digit));
        self
    }

    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.buffer.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    #[doc(hidden)]
    pub fn len(&self) -> usize {
        self.length
    }
}

/// Counts in counter `n` of [`Element::COUNTERS`].
#[inline]
pub fn count(n: usize, add: u64) {
    // SAFETY: a module has one thread, and nothing else borrows the counters meanwhile.
    unsafe {
        let counters = core::ptr::addr_of_mut!(COUNTERS);
        if let Some(counter) = (*counters).get_mut(n) {
            *counter += add;
        }
    }
}

/// Sets counter `n` of [`Element::COUNTERS`] to zero.
pub fn reset_count(n: usize) {
    // SAFETY: as in `count`.
    unsafe {
        let counters = core::ptr::addr_of_mut!(COUNTERS);
        if let Some(counter) = (*counters).get_mut(n) {
            *counter = 0;
        }
    }
}

#[doc(hidden)]
pub const MOST_COUNTERS: usize = 64;
#[doc(hidden)]
pub static mut COUNTERS: [u64; MOST_COUNTERS] = [0; MOST_COUNTERS];

/// Functions of Castanet.
mod imports {
    #[link(wasm_import_module = "castanet")]
    extern "C" {
        #[cfg_attr(target_arch = "wasm32", link_name = "log")]
        pub(crate) fn castanet_log(text: *const u8, length: u32);
        #[cfg_attr(target_arch = "wasm32", link_name = "now")]
        pub(crate) fn castanet_now() -> u64;
        #[cfg_attr(target_arch = "wasm32", link_name = "random")]
        pub(crate) fn castanet_random() -> u64;
    }
}

/// Logs a line. Castanet prints up to ten a second.
pub fn log(line: &str) {
    // SAFETY: the text is borrowed for the call.
    unsafe { imports::castanet_log(line.as_ptr(), line.len() as u32) }
}

/// The time of the batch by Castanet's clock: nanoseconds since 1970.
pub fn now() -> u64 {
    // SAFETY: the call has no precondition.
    unsafe { imports::castanet_now() }
}

/// A random number, seeded by Castanet.
pub fn random() -> u64 {
    // SAFETY: the call has no precondition.
    unsafe { imports::castanet_random() }
}

/// Addresses of two texts, or of a text and a number.
#[doc(hidden)]
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Pair(pub *const u8, pub *const u8);

/// The description of the module, as Castanet reads it.
#[doc(hidden)]
#[repr(C)]
pub struct Description {
    pub size: u32,
    pub flags: u32,
    pub snap: u32,
    pub headroom: u32,
    pub batch: u32,
    pub slots: *const u8,
    pub annotations: *const Annotations,
    pub text: *const u8,
    pub text_size: u32,
    pub reasons: *const Pair,
    pub reason_count: u32,
    pub counters: *const Pair,
    pub counter_count: u32,
    pub handlers: *const Pair,
    pub handler_count: u32,
}

/// Bytes of a slot.
#[doc(hidden)]
pub const fn stride(headroom: usize, snap: usize) -> usize {
    assert!(headroom % 16 == 0 && snap % 16 == 0, "headroom and snap are multiples of 16");
    core::mem::size_of::<Descriptor>() + headroom + snap
}

/// Bytes with the alignment of slots.
#[doc(hidden)]
#[repr(C, align(16))]
pub struct Aligned<T>(pub T);

/// Copies a message into the text buffer; the answer to Castanet.
#[doc(hidden)]
pub fn answer(result: Result<(), &str>, buffer: &mut [u8]) -> i32 {
    match result {
        Ok(()) => 0,
        Err(message) => {
            let mut text = Text::new(buffer);
            text.text(message);
            -(text.len() as i32)
        }
    }
}

/// Defines the module: the type of its element, how many bytes of a packet it sees and its headroom, both
/// multiples of 16, and how many packets a batch has at most. `annotations: true` adds destination and
/// time stamp.
#[macro_export]
macro_rules! module {
    ($element:ty, snap: $snap:expr, headroom: $headroom:expr, batch: $batch:expr) => {
        $crate::module!($element, snap: $snap, headroom: $headroom, batch: $batch, annotations: false);
    };
    ($element:ty, snap: $snap:expr, headroom: $headroom:expr, batch: $batch:expr,
     annotations: $annotations:expr) => {
        mod castanet_module_exports {
            use super::*;
            use $crate::{Aligned, Annotations, Description, Packet, Pair, Text};

            const STRIDE: usize = $crate::stride($headroom, $snap);
            const ANNOTATED: usize = if $annotations { $batch } else { 0 };
            static mut ANNOTATIONS: [Annotations; ANNOTATED] = [$crate::NO_ANNOTATIONS; ANNOTATED];
            static mut SLOTS: Aligned<[u8; STRIDE * $batch]> = Aligned([0; STRIDE * $batch]);
            static mut TEXT: [u8; 4096] = [0; 4096];
            static mut ELEMENT: Option<$element> = None;
            static mut REASONS: [Pair; 7] = [Pair(core::ptr::null(), core::ptr::null()); 7];
            static mut NAMES: [[Pair; 64]; 2] = [[Pair(core::ptr::null(), core::ptr::null()); 64]; 2];
            static mut DESCRIPTION: core::mem::MaybeUninit<Description> =
                core::mem::MaybeUninit::uninit();

            /// The text that Castanet has put into the buffer.
            unsafe fn text(length: u32) -> &'static str {
                let buffer = &*core::ptr::addr_of!(TEXT);
                let bytes = buffer.get(..length as usize).unwrap_or(&[]);
                core::str::from_utf8(bytes).unwrap_or("")
            }

            #[no_mangle]
            extern "C" fn castanet_abi_version() -> i32 {
                $crate::ABI_VERSION
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_module() -> *const Description {
                let reasons = <$element as $crate::Element>::REASONS;
                let counters = <$element as $crate::Element>::COUNTERS;
                let handlers = <$element as $crate::Element>::HANDLERS;
                let reason_places = &mut *core::ptr::addr_of_mut!(REASONS);
                for (place, (name, doc)) in reason_places.iter_mut().zip(reasons) {
                    *place = Pair(name.as_ptr(), doc.as_ptr());
                }
                let [counter_places, handler_places] = &mut *core::ptr::addr_of_mut!(NAMES);
                let values = core::ptr::addr_of!($crate::COUNTERS) as *const u64;
                for (n, (place, name)) in counter_places.iter_mut().zip(counters).enumerate() {
                    *place = Pair(name.as_ptr(), values.add(n) as *const u8);
                }
                for (place, (name, access)) in handler_places.iter_mut().zip(handlers) {
                    *place = Pair(name.as_ptr(), *access as u32 as usize as *const u8);
                }
                let description = Description {
                    size: core::mem::size_of::<Description>() as u32,
                    flags: if $annotations { 1 } else { 0 },
                    snap: $snap,
                    headroom: $headroom,
                    batch: $batch,
                    slots: core::ptr::addr_of!(SLOTS) as *const u8,
                    annotations: match ANNOTATED {
                        0 => core::ptr::null(),
                        _ => core::ptr::addr_of!(ANNOTATIONS) as *const Annotations,
                    },
                    text: core::ptr::addr_of!(TEXT) as *const u8,
                    text_size: 4096,
                    reasons: reason_places.as_ptr(),
                    reason_count: reasons.len() as u32,
                    counters: counter_places.as_ptr(),
                    counter_count: counters.len() as u32,
                    handlers: handler_places.as_ptr(),
                    handler_count: handlers.len() as u32,
                };
                let place = &mut *core::ptr::addr_of_mut!(DESCRIPTION);
                place.write(description)
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_init(length: u32) -> i32 {
                let made = <$element as $crate::Element>::configure(text(length));
                let place = &mut *core::ptr::addr_of_mut!(ELEMENT);
                let done = made.map(|element| *place = Some(element));
                $crate::answer(done, &mut *core::ptr::addr_of_mut!(TEXT))
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_update(length: u32) -> i32 {
                let done = match &mut *core::ptr::addr_of_mut!(ELEMENT) {
                    Some(element) => element.update(text(length)),
                    None => Err("is not configured"),
                };
                $crate::answer(done, &mut *core::ptr::addr_of_mut!(TEXT))
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_process(count: u32) {
                let mut slot = core::ptr::addr_of_mut!(SLOTS) as *mut u8;
                let mut annotations = (*core::ptr::addr_of_mut!(ANNOTATIONS)).iter_mut();
                if let Some(element) = &mut *core::ptr::addr_of_mut!(ELEMENT) {
                    for _ in 0..count {
                        let mut packet = Packet::at(slot, STRIDE, annotations.next());
                        let verdict = $crate::Element::packet(element, &mut packet);
                        packet.decide(verdict);
                        slot = slot.add(STRIDE);
                    }
                }
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_read(handler: u32) -> i32 {
                let mut out = Text::new(&mut *core::ptr::addr_of_mut!(TEXT));
                if let Some(element) = &*core::ptr::addr_of!(ELEMENT) {
                    $crate::Element::read(element, handler as usize, &mut out);
                }
                out.len() as i32
            }

            #[no_mangle]
            unsafe extern "C" fn castanet_write(handler: u32, length: u32) -> i32 {
                let done = match &mut *core::ptr::addr_of_mut!(ELEMENT) {
                    Some(element) => element.write(handler as usize, text(length)),
                    None => Err("is not configured"),
                };
                $crate::answer(done, &mut *core::ptr::addr_of_mut!(TEXT))
            }

            #[cfg(target_arch = "wasm32")]
            #[panic_handler]
            fn panic(_: &core::panic::PanicInfo) -> ! {
                core::arch::wasm32::unreachable()
            }
        }
    };
}
