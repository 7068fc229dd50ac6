//! Values of read handlers, and how the values of several workers become one.

use crate::args::UdpPort;
use castanet_wire::print::Ip6Text;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The value of a read handler.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count; workers' counts add up.
    Count(u64),
    /// A rate or another real number; workers' numbers add up.
    Real(f64),
    /// Counts with what they count, one a line; workers' counts add up.
    Counts(Vec<(u64, Cow<'static, str>)>),
    /// A text computed from counts; workers' counts add up first.
    Sums(Sums),
    /// A text; all workers have the same one.
    Text(String),
    /// A value that is the same on all workers: one of them is asked.
    Shared(Box<Value>),
    /// A chunk of a long text, which one worker has for all.
    Chunk(TextChunk),
}

/// A chunk of a text that would keep a worker from its packets if it were written at once, such as a table
/// of a million flows: the worker writes one chunk at a time, between two bursts. An entry that is in the
/// table from the first chunk to the last is in the text once; one that comes or goes meanwhile may be.
#[derive(Clone, Debug)]
pub struct TextChunk {
    /// Whole lines.
    pub text: String,
    /// Start of the next chunk ([`ReadRequest::from`](super::ReadRequest)); `None` behind the last.
    pub next: Option<u64>,
    /// Makes the value of the text of all chunks, on the control thread; such as
    /// [`TextChunk::as_it_is`].
    pub finish: fn(String) -> String,
}

impl TextChunk {
    /// The text, unchanged.
    pub fn as_it_is(text: String) -> String {
        text
    }

    /// The lines of a text in their order.
    pub fn sorted(text: String) -> String {
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.sort_unstable();
        lines.concat()
    }
}

impl PartialEq for TextChunk {
    fn eq(&self, other: &TextChunk) -> bool {
        (&self.text, self.next) == (&other.text, other.next)
    }
}

/// Counts, and a text that is computed of them: a mean, a median, a distribution, a table.
#[derive(Clone)]
pub struct Sums {
    counts: Vec<u64>,
    say: Arc<Say>,
}

/// Writes the text of counts.
type Say = dyn Fn(&[u64]) -> String + Send + Sync;

impl Sums {
    /// Counts of one worker, and a function that writes the text of the counts of all workers together.
    /// Where two workers have different numbers of counts, the shorter list goes on with zeros.
    pub fn new(counts: Vec<u64>, say: impl Fn(&[u64]) -> String + Send + Sync + 'static) -> Sums {
        Sums { counts, say: Arc::new(say) }
    }

    fn merge(self, other: Sums) -> Sums {
        let (mut counts, more) = match self.counts.len() >= other.counts.len() {
            true => (self.counts, other.counts),
            false => (other.counts, self.counts),
        };
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        Sums { counts, ..self }
    }
}

impl fmt::Debug for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Sums").field(&self.counts).finish()
    }
}

impl PartialEq for Sums {
    fn eq(&self, other: &Sums) -> bool {
        self.counts == other.counts && (self.say)(&self.counts) == (other.say)(&other.counts)
    }
}

impl Value {
    /// A value that is the same on all workers.
    pub fn common(value: impl Into<Value>) -> Value {
        Value::Shared(Box::new(value.into()))
    }

    /// The values of two workers as one.
    pub fn merge(self, other: Value) -> Value {
        match (self, other) {
            (Value::Count(a), Value::Count(b)) => Value::Count(a + b),
            (Value::Real(a), Value::Real(b)) => Value::Real(a + b),
            (Value::Counts(a), Value::Counts(b)) => Value::Counts(
                a.into_iter().zip(b).map(|((n, label), (more, _))| (n + more, label)).collect(),
            ),
            (Value::Sums(a), Value::Sums(b)) => Value::Sums(a.merge(b)),
            (Value::Text(a), Value::Text(b)) if a.is_empty() => Value::Text(b),
            (first, _) => first,
        }
    }
}

macro_rules! values {
    ($($ty:ty => $make:expr;)*) => {$(
        impl From<$ty> for Value {
            fn from(v: $ty) -> Self {
                #[allow(clippy::redundant_closure_call)]
                ($make)(v)
            }
        }
    )*};
}

values! {
    u64 => Value::Count;
    u32 => |n| Value::Count(u64::from(n));
    u8 => |n: u8| Value::Text(n.to_string());
    u16 => |n: u16| Value::Text(n.to_string());
    UdpPort => |port: UdpPort| Value::Text(port.to_string());
    i32 => |n: i32| Value::Text(n.to_string());
    i64 => |n: i64| Value::Text(n.to_string());
    f64 => Value::Real;
    bool => |b: bool| Value::Text(b.to_string());
    String => Value::Text;
    &str => |s: &str| Value::Text(s.to_owned());
    std::net::Ipv4Addr => |a: std::net::Ipv4Addr| Value::Text(a.to_string());
    std::net::Ipv6Addr => |a: std::net::Ipv6Addr| Value::Text(Ip6Text(a).to_string());
    Duration => interval;
    crate::args::Bandwidth => bandwidth;
    crate::args::Data => |d: crate::args::Data| Value::Text(String::from_utf8_lossy(&d.0).into());
    castanet_wire::MacAddr => |a: castanet_wire::MacAddr| Value::Text(a.to_string());
}

/// An interval in the largest unit that leaves a whole number, seconds with
/// their fraction, as Click prints it.
fn interval(time: Duration) -> Value {
    let nanos = time.as_nanos();
    Value::Text(match nanos {
        n if n % 1_000_000_000 == 0 => format!("{}s", n / 1_000_000_000),
        n if n > 1_000_000_000 => format!("{}s", time.as_secs_f64()),
        n if n % 1_000_000 == 0 => format!("{}ms", n / 1_000_000),
        n if n % 1_000 == 0 => format!("{}us", n / 1_000),
        n => format!("{n}ns"),
    })
}

/// A bandwidth in bits a second, in the largest unit that leaves a whole number.
fn bandwidth(bytes: crate::args::Bandwidth) -> Value {
    let bits = u128::from(bytes.0) * 8;
    let units = [(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")];
    let unit = units.into_iter().find(|(n, _)| bits > 0 && bits % n == 0).unwrap_or((1, "bps"));
    Value::Text(format!("{}{}", bits / unit.0, unit.1))
}

impl From<TextChunk> for Value {
    fn from(piece: TextChunk) -> Self {
        Value::Chunk(piece)
    }
}

impl From<Sums> for Value {
    fn from(sums: Sums) -> Self {
        Value::Sums(sums)
    }
}

impl From<usize> for Value {
    fn from(n: usize) -> Self {
        Value::Count(n as u64)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(v: Option<T>) -> Self {
        v.map_or(Value::Text(String::new()), Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(n) => write!(f, "{n}"),
            Value::Real(x) => write!(f, "{x}"),
            Value::Counts(rows) => {
                rows.iter().try_for_each(|(n, label)| writeln!(f, "{n}\t{label}"))
            }
            Value::Sums(sums) => f.write_str(&(sums.say)(&sums.counts)),
            Value::Text(s) => f.write_str(s),
            Value::Shared(value) => value.fmt(f),
            Value::Chunk(piece) => f.write_str(&piece.text),
        }
    }
}
