//! The description of a module: buffers, reasons to drop, counters, handlers.

use crate::abi::{
    ALIGN, ANNOTATIONS, DESCRIPTOR, MAX_BATCH, MAX_HEADROOM, MAX_NAMES, MAX_REASONS, MAX_SNAP,
    MAX_STRING, MAX_TEXT, MIN_TEXT, MODULE_WORDS, READ, TIMESTAMPS, WRITE,
};
use crate::exit::WasmExit;
use castanet_element::fate::{Fate, LossReason};
use std::ops::Range;

/// A part of the description, or the reason why it is refused.
type InterfaceResult<T> = Result<T, String>;

/// The description of a module. All ranges lie within its memory, which never shrinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleInterface {
    /// Whether the annotations have time stamps.
    pub(crate) has_timestamps: bool,
    /// Bytes of each packet that are copied in.
    pub(crate) snap: usize,
    /// Free bytes before each packet.
    pub(crate) headroom: usize,
    /// Packets in a batch.
    pub(crate) batch: usize,
    /// Addresses of the slots: each has a descriptor, headroom and bytes.
    pub(crate) slots: Range<usize>,
    /// Addresses of the annotations; empty if the module does not want any.
    pub(crate) annotations: Range<usize>,
    /// Addresses of the text buffer.
    pub(crate) text: Range<usize>,
    /// Names and sentences of reasons to drop.
    pub(crate) reasons: Vec<(String, String)>,
    /// Names and addresses of counters.
    pub(crate) counters: Vec<(String, usize)>,
    /// Names of handlers, each with its access.
    pub(crate) handlers: Vec<(String, u32)>,
}

impl ModuleInterface {
    /// Packets of a batch at most.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.batch
    }

    /// Bytes of a slot.
    #[inline]
    pub(crate) fn stride(&self) -> usize {
        self.first_byte() + self.snap
    }

    /// The offset of a packet's first byte in its slot, as it comes.
    #[inline]
    pub(crate) fn first_byte(&self) -> usize {
        DESCRIPTOR + self.headroom
    }

    /// Reads the description at `address`.
    ///
    /// # Errors
    /// A number or an address is out of range, or a name is none.
    pub(crate) fn read(memory: &[u8], address: u32) -> InterfaceResult<ModuleInterface> {
        let view = MemoryView(memory);
        let word = |n: usize| view.word("the module's description", address as usize + 4 * n);
        if word(0)? as usize != 4 * MODULE_WORDS {
            return Err(format!(
                "the module's description has {} bytes; it should have {}",
                word(0)?,
                4 * MODULE_WORDS
            ));
        }
        let within = |n: usize, name: &str, range: Range<u32>| match word(n)? {
            value if range.contains(&value) => Ok(value),
            value => {
                let (from, to) = (range.start, range.end - 1);
                Err(format!("`{name}` of the module is {value}; it can be {from} to {to}"))
            }
        };
        let multiple = |n: usize, name: &str, most: u32| match within(n, name, 0..most + 1)? {
            value if (value as usize).is_multiple_of(ALIGN) => Ok(value as usize),
            value => Err(format!("`{name}` of the module is {value}, no multiple of {ALIGN}")),
        };
        let snap = multiple(2, "snap", MAX_SNAP)?;
        let headroom = multiple(3, "headroom", MAX_HEADROOM)?;
        let batch = within(4, "batch", 1..MAX_BATCH + 1)? as usize;
        let text = within(8, "text_size", MIN_TEXT..MAX_TEXT + 1)? as usize;
        let stride = DESCRIPTOR + headroom + snap;
        let annotations = if word(6)? == 0 { 0 } else { batch * ANNOTATIONS };
        let count = |n, name, most: u32| within(n, name, 0..most + 1);
        let table = |at: usize, count: u32, name: &str, words: u32| {
            view.range(name, word(at)?, (count * words * 4) as usize)
        };
        let reasons = count(10, "reason_count", MAX_REASONS)?;
        let counters = count(12, "counter_count", MAX_NAMES)?;
        let handlers = count(14, "handler_count", MAX_NAMES)?;
        let interface = ModuleInterface {
            has_timestamps: word(1)? & TIMESTAMPS != 0,
            snap,
            headroom,
            batch,
            slots: view.range("slots", word(5)?, batch * stride)?,
            annotations: view.range("annotations", word(6)?, annotations)?,
            text: view.range("text", word(7)?, text)?,
            reasons: view.reasons(table(9, reasons, "reasons", 2)?)?,
            counters: view.counters(table(11, counters, "counters", 2)?)?,
            handlers: view.handlers(table(13, handlers, "handlers", 2)?)?,
        };
        interface.check_names()?;
        Ok(interface)
    }

    /// The reasons to drop, with the indexes of their fates.
    pub(crate) fn loss_reasons(&self) -> Vec<(u8, LossReason)> {
        let numbered = (0u8..).zip(&self.reasons);
        let reason = |(n, (name, doc)): (u8, &(String, String))| {
            (WasmExit::Reason(n).index(), LossReason { name: name.clone(), doc: doc.clone() })
        };
        numbered.map(reason).collect()
    }

    /// The names of handlers with this access; those of counters are read too.
    pub(crate) fn handler_names(&self, access: u32) -> Vec<String> {
        let counters = self.counters.iter().map(|(name, _)| name.clone());
        let handlers = self.handlers.iter().filter(|(_, it)| it & access != 0);
        let handlers = handlers.map(|(name, _)| name.clone());
        if access == READ { counters.chain(handlers).collect() } else { handlers.collect() }
    }

    /// The number of a handler with this access.
    pub(crate) fn handler(&self, name: &str, access: u32) -> Option<u32> {
        let place = self.handlers.iter().position(|(it, has)| it == name && has & access != 0);
        place.and_then(|place| place.try_into().ok())
    }

    /// The value of a counter.
    pub(crate) fn counter(&self, memory: &[u8], address: usize) -> u64 {
        let bytes = memory.get(address..).and_then(|rest| rest.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Checks that no two handlers and no two reasons have one name.
    fn check_names(&self) -> InterfaceResult<()> {
        let mut handlers: Vec<&str> = self.counters.iter().map(|it| it.0.as_str()).collect();
        handlers.extend(self.handlers.iter().map(|it| it.0.as_str()));
        let reasons: Vec<&str> = self.reasons.iter().map(|it| it.0.as_str()).collect();
        let own = <WasmExit as Fate>::FATES.iter().map(|fate| fate.name);
        let reasons: Vec<&str> = reasons.into_iter().chain(own).collect();
        for (kind, mut names) in [("handlers or counters", handlers), ("reasons", reasons)] {
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("two {kind} of the module are called `{}`", pair[0]));
            }
        }
        Ok(())
    }
}

/// The memory of a module, for reads of what it says about itself.
struct MemoryView<'a>(&'a [u8]);

impl MemoryView<'_> {
    /// The addresses of `length` bytes from `address` on.
    fn range(&self, name: &str, address: u32, length: usize) -> InterfaceResult<Range<usize>> {
        let range = address as usize..address as usize + length;
        match range.end <= self.0.len() {
            true => Ok(range),
            false => Err(format!(
                "`{name}` of the module lies at {address} with {length} bytes; its memory has {}",
                self.0.len()
            )),
        }
    }

    fn word(&self, name: &str, address: usize) -> InterfaceResult<u32> {
        let bytes = self.0.get(address..).and_then(|rest| rest.first_chunk());
        let outside = || format!("{name} lies at {address}, outside of the module's memory");
        bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(outside)
    }

    /// A text that ends before a byte 0.
    fn string(&self, name: &str, address: u32) -> InterfaceResult<String> {
        let rest = self.0.get(address as usize..).unwrap_or_default();
        let end = rest.iter().take(MAX_STRING + 1).position(|byte| *byte == 0);
        let text = end.and_then(|end| std::str::from_utf8(&rest[..end]).ok());
        text.map(str::to_owned).ok_or_else(|| {
            format!(
                "{name} at {address} is no text of at most {MAX_STRING} bytes with a byte 0 behind it"
            )
        })
    }

    /// A name such as `no_route`.
    fn name(&self, kind: &str, address: u32) -> InterfaceResult<String> {
        let name = self.string(kind, address)?;
        let is_name = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        match is_name {
            true => Ok(name),
            false => Err(format!(
                "{kind} {name:?} of the module is no name: lower-case letters, digits and `_`"
            )),
        }
    }

    /// The two words of each entry of a table.
    fn pairs(&self, range: Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        let (words, _) = self.0[range].as_chunks::<4>();
        let (pairs, _) = words.as_chunks::<2>();
        pairs.iter().map(|[a, b]| (u32::from_le_bytes(*a), u32::from_le_bytes(*b)))
    }

    fn reasons(&self, range: Range<usize>) -> InterfaceResult<Vec<(String, String)>> {
        let reason = |(name, doc)| {
            Ok((self.name("the reason", name)?, self.string("the sentence of a reason", doc)?))
        };
        self.pairs(range).map(reason).collect()
    }

    fn counters(&self, range: Range<usize>) -> InterfaceResult<Vec<(String, usize)>> {
        let counter = |(name, value)| {
            let name = self.name("the counter", name)?;
            Ok((name, self.range("the value of a counter", value, 8)?.start))
        };
        self.pairs(range).map(counter).collect()
    }

    fn handlers(&self, range: Range<usize>) -> InterfaceResult<Vec<(String, u32)>> {
        let handler = |(name, access)| match access {
            1..=3 => Ok((self.name("the handler", name)?, access & (READ | WRITE))),
            _ => Err(format!("the access of a handler is {access}; it can be 1 to 3")),
        };
        self.pairs(range).map(handler).collect()
    }
}
