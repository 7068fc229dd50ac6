//! A list of a limited number of elements.

use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::Formatter;
use std::marker::PhantomData;

/// At most `MAX` elements: a longer list is refused before its elements are read.
pub(super) struct List<T, const MAX: usize>(pub(super) Vec<T>);

impl<T: Serialize, const MAX: usize> Serialize for List<T, MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.len() > MAX {
            let message = format_args!("{} elements, where {MAX} are allowed", self.0.len());
            return Err(serde::ser::Error::custom(message));
        }
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// Reads the elements of a list.
struct Elements<T, const MAX: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Elements<T, MAX> {
    type Value = List<T, MAX>;

    fn expecting(&self, f: &mut Formatter) -> std::fmt::Result {
        write!(f, "at most {MAX} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<List<T, MAX>, A::Error> {
        /// Room that is made before elements have come: a length alone costs no memory.
        const ROOM: usize = 1 << 10;
        let count = elements.size_hint().unwrap_or(0);
        if count > MAX {
            return Err(A::Error::invalid_length(count, &self));
        }
        let mut list = Vec::with_capacity(count.min(ROOM));
        while let Some(element) = elements.next_element()? {
            if list.len() == MAX {
                return Err(A::Error::invalid_length(MAX + 1, &self));
            }
            list.push(element);
        }
        Ok(List(list))
    }
}
