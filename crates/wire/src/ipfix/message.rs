//! Messages that are put together: templates and data records, up to a length.

use super::element::{Field, FieldValue};
use super::{
    FieldSpecifier, MessageHeader, REVERSE_ENTERPRISE, SetHeader, TemplateHeader, VERSION,
};

/// A template: the identifier and the fields of its data records.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// Its identifier, from [`SetHeader::FIRST_DATA`] on.
    pub id: u16,
    /// The first fields, as many as name the scope of an options template; 0 for other templates.
    pub scope_count: u16,
    /// Its fields, in order.
    pub fields: &'static [Field],
}

impl Template {
    /// The length of a data record in bytes.
    pub const fn record_len(&self) -> usize {
        let (mut len, mut number) = (0, 0);
        while number < self.fields.len() {
            len += self.fields[number].element.value_len();
            number += 1;
        }
        len
    }

    /// The identifier of the sets in which the template stands.
    fn set_id(&self) -> u16 {
        match self.scope_count {
            0 => SetHeader::TEMPLATES,
            _ => SetHeader::OPTIONS_TEMPLATES,
        }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let mut header = TemplateHeader([0; TemplateHeader::LEN]);
        header.set_id(self.id);
        header.set_field_count(self.fields.len() as u16);
        bytes.extend(header.bytes());
        if self.scope_count > 0 {
            bytes.extend(self.scope_count.to_be_bytes());
        }
        for field in self.fields {
            let mut specifier = FieldSpecifier([0; FieldSpecifier::LEN]);
            let enterprise = if field.is_reverse { FieldSpecifier::HAS_ENTERPRISE } else { 0 };
            specifier.set_element(field.element.number() | enterprise);
            specifier.set_length(field.element.value_len() as u16);
            bytes.extend(specifier.bytes());
            if field.is_reverse {
                bytes.extend(REVERSE_ENTERPRISE.to_be_bytes());
            }
        }
    }
}

/// A message that is being put together.
#[derive(Debug)]
pub struct MessageBuffer {
    /// The message so far, with room for its header.
    bytes: Vec<u8>,
    max_len: usize,
    /// The offset and the identifier of the last set, which is still open.
    open_set: Option<(usize, u16)>,
    data_records: u32,
}

impl MessageBuffer {
    /// The least limit of a message's length, which leaves room for each template and record.
    pub const MIN_LEN: usize = 256;

    /// An empty message of at most `max_len` bytes; [`MessageBuffer::MIN_LEN`] if that is more.
    pub fn new(max_len: usize) -> MessageBuffer {
        let bytes = vec![0; MessageHeader::LEN];
        let mut buffer = MessageBuffer { bytes, max_len: 0, open_set: None, data_records: 0 };
        buffer.set_max_len(max_len);
        buffer
    }

    /// Sets the limit of the length, for records that are added from now on.
    pub fn set_max_len(&mut self, max_len: usize) {
        self.max_len = max_len.clamp(Self::MIN_LEN, usize::from(u16::MAX));
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == MessageHeader::LEN
    }

    /// Number of data records, those of options templates included.
    pub fn data_records(&self) -> u32 {
        self.data_records
    }

    /// Adds a template; false if there is no room.
    pub fn add_template(&mut self, template: &Template) -> bool {
        self.add(template.set_id(), |bytes| template.write(bytes))
    }

    /// Adds a data record with these values; false if there is no room.
    pub fn add_record(&mut self, template: &Template, value: impl Fn(Field) -> FieldValue) -> bool {
        let is_added = self.add(template.id, |bytes| {
            let write = |field: &Field| value(*field).write(field.element.value_len(), bytes);
            template.fields.iter().for_each(write);
        });
        self.data_records += u32::from(is_added);
        is_added
    }

    /// Adds a record to the open set if that has this identifier, else to a new set.
    fn add(&mut self, set_id: u16, write: impl FnOnce(&mut Vec<u8>)) -> bool {
        let (before, opened) = (self.bytes.len(), self.open_set);
        if opened.is_none_or(|(_, id)| id != set_id) {
            self.close_set();
            let mut header = SetHeader([0; SetHeader::LEN]);
            header.set_id(set_id);
            self.open_set = Some((before, set_id));
            self.bytes.extend(header.bytes());
        }
        write(&mut self.bytes);
        let fits = self.bytes.len() <= self.max_len;
        if !fits {
            self.bytes.truncate(before);
            self.open_set = opened;
        }
        fits
    }

    /// Sets the length of the open set.
    fn close_set(&mut self) {
        let Some((at, _)) = self.open_set else { return };
        let len = self.bytes.len() - at;
        if let Some((header, _)) = SetHeader::from_prefix_mut(&mut self.bytes[at..]) {
            header.set_length(len as u16);
        }
    }

    /// Completes the message with the fields of its header, and returns its bytes. The caller then
    /// calls [`MessageBuffer::clear`].
    pub fn finish(&mut self, export_time: u32, sequence: u32, domain: u32) -> &[u8] {
        self.close_set();
        let len = self.bytes.len();
        if let Some((header, _)) = MessageHeader::from_prefix_mut(&mut self.bytes) {
            header.set_version(VERSION);
            header.set_length(len as u16);
            header.set_export_time(export_time);
            header.set_sequence(sequence);
            header.set_domain(domain);
        }
        &self.bytes
    }

    /// Empties the message.
    pub fn clear(&mut self) {
        self.bytes.truncate(MessageHeader::LEN);
        (self.open_set, self.data_records) = (None, 0);
    }
}
