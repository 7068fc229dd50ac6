//! The decoder of messages, as a collector has it.

use super::element::{Element, Field, FieldValue};
use super::{
    FieldSpecifier, MessageHeader, REVERSE_ENTERPRISE, SetHeader, TemplateHeader, VERSION,
};
use std::collections::BTreeMap;

/// A fault in a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The message is not of this version, or shorter or longer than its header says.
    Header,
    /// A set is shorter than its header, or longer than the message.
    Set,
    /// A template ends early, has an identifier of sets of templates, or records without bytes.
    Template,
    /// A value with a length of its own is longer than its set.
    Value,
}

/// A field specifier of a received template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ReceivedField {
    enterprise: u32,
    number: u16,
    length: u16,
}

/// Reads the messages of one transport session, and remembers its templates.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The fields of templates, by observation domain and identifier.
    templates: BTreeMap<(u32, u16), Vec<ReceivedField>>,
}

/// The contents of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedMessage {
    /// The message's header.
    pub header: MessageHeader,
    /// Identifiers of the templates in the message.
    pub templates: Vec<u16>,
    /// The data records, in order.
    pub records: Vec<DecodedRecord>,
    /// Sets of data records whose template is unknown.
    pub unknown_sets: usize,
}

/// A data record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DecodedRecord {
    /// Identifier of its template.
    pub template: u16,
    /// Its fields with their bytes.
    fields: Vec<(ReceivedField, Vec<u8>)>,
}

impl DecodedRecord {
    /// The value of a field; `None` if the record has no such field.
    pub fn value(&self, field: Field) -> Option<FieldValue> {
        let enterprise = if field.is_reverse { REVERSE_ENTERPRISE } else { 0 };
        let is_it =
            |it: &ReceivedField| (it.enterprise, it.number) == (enterprise, field.element.number());
        let (_, bytes) = self.fields.iter().find(|(it, _)| is_it(it))?;
        FieldValue::read(field.element, bytes)
    }

    /// The number in an element of the forward direction; `None` without one.
    pub fn number(&self, element: Element) -> Option<u64> {
        match self.value(Field::of(element))? {
            FieldValue::Unsigned(number) => Some(number),
            FieldValue::Address(_) => None,
        }
    }
}

impl Decoder {
    /// Reads a message.
    ///
    /// # Errors
    /// A message that is malformed; templates before the fault are remembered.
    pub fn decode(&mut self, message: &[u8]) -> Result<DecodedMessage, DecodeError> {
        let (header, mut rest) = MessageHeader::from_prefix(message).ok_or(DecodeError::Header)?;
        if header.version() != VERSION || usize::from(header.length()) != message.len() {
            return Err(DecodeError::Header);
        }
        let mut decoded = DecodedMessage {
            header: *header,
            templates: Vec::new(),
            records: Vec::new(),
            unknown_sets: 0,
        };
        while !rest.is_empty() {
            let (set, _) = SetHeader::from_prefix(rest).ok_or(DecodeError::Set)?;
            let (whole, behind) =
                rest.split_at_checked(set.length().into()).ok_or(DecodeError::Set)?;
            let contents = whole.get(SetHeader::LEN..).ok_or(DecodeError::Set)?;
            match set.id() {
                SetHeader::TEMPLATES => self.read_templates(contents, false, &mut decoded)?,
                SetHeader::OPTIONS_TEMPLATES => {
                    self.read_templates(contents, true, &mut decoded)?
                }
                id => self.read_records(id, contents, &mut decoded)?,
            }
            rest = behind;
        }
        Ok(decoded)
    }

    fn read_templates(
        &mut self,
        mut rest: &[u8],
        has_scope: bool,
        decoded: &mut DecodedMessage,
    ) -> Result<(), DecodeError> {
        // A rest that is shorter than a template is padding.
        while let Some((template, behind)) = TemplateHeader::from_prefix(rest) {
            rest = behind;
            if has_scope && template.field_count() > 0 {
                rest = rest.get(size_of::<u16>()..).ok_or(DecodeError::Template)?;
            }
            let mut fields = Vec::new();
            for _ in 0..template.field_count() {
                let (field, behind) = read_field(rest).ok_or(DecodeError::Template)?;
                fields.push(field);
                rest = behind;
            }
            let key = (decoded.header.domain(), template.id());
            if fields.is_empty() {
                self.templates.remove(&key);
                continue;
            }
            if template.id() < SetHeader::FIRST_DATA || fields.iter().all(|it| it.length == 0) {
                return Err(DecodeError::Template);
            }
            self.templates.insert(key, fields);
            decoded.templates.push(template.id());
        }
        Ok(())
    }

    fn read_records(
        &self,
        id: u16,
        mut rest: &[u8],
        decoded: &mut DecodedMessage,
    ) -> Result<(), DecodeError> {
        let Some(template) = self.templates.get(&(decoded.header.domain(), id)) else {
            decoded.unknown_sets += 1;
            return Ok(());
        };
        let min_len = |it: &ReceivedField| match it.length {
            FieldSpecifier::VARIABLE => 1,
            length => usize::from(length),
        };
        let record_len: usize = template.iter().map(min_len).sum();
        // A rest that is shorter than a record is padding.
        while rest.len() >= record_len {
            let mut fields = Vec::with_capacity(template.len());
            for field in template {
                let (value, behind) = read_value(field, rest).ok_or(DecodeError::Value)?;
                fields.push((*field, value.to_vec()));
                rest = behind;
            }
            decoded.records.push(DecodedRecord { template: id, fields });
        }
        Ok(())
    }
}

fn read_field(bytes: &[u8]) -> Option<(ReceivedField, &[u8])> {
    let (specifier, mut rest) = FieldSpecifier::from_prefix(bytes)?;
    let mut enterprise = 0;
    if specifier.element() & FieldSpecifier::HAS_ENTERPRISE != 0 {
        let (number, behind) = rest.split_first_chunk()?;
        (enterprise, rest) = (u32::from_be_bytes(*number), behind);
    }
    let number = specifier.element() & !FieldSpecifier::HAS_ENTERPRISE;
    Some((ReceivedField { enterprise, number, length: specifier.length() }, rest))
}

/// The bytes of a field, and those behind it. A value of variable length begins with its length in
/// one byte, or with 255 and its length in two (RFC 7011, section 7).
fn read_value<'b>(field: &ReceivedField, bytes: &'b [u8]) -> Option<(&'b [u8], &'b [u8])> {
    if field.length != FieldSpecifier::VARIABLE {
        return bytes.split_at_checked(field.length.into());
    }
    let (&short, rest) = bytes.split_first()?;
    if short != u8::MAX {
        return rest.split_at_checked(short.into());
    }
    let (long, rest) = rest.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*long).into())
}
