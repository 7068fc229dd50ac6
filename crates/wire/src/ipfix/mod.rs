//! IPFIX (RFC 7011): messages of templates and data records, flow records, and a decoder.
//!
//! A [`Template`] lists information elements. [`MessageBuffer`] collects templates and data records
//! up to the length of a message. [`FlowRecord`] knows its template and its values; [`Decoder`]
//! reads messages of any exporter.

mod decoder;
mod element;
mod flow_record;
mod message;
mod options;
#[cfg(test)]
mod tests;

pub use decoder::{DecodeError, DecodedMessage, DecodedRecord, Decoder};
pub use element::{Element, Field, FieldValue, REVERSE_ENTERPRISE};
pub use flow_record::{
    CONNECTION_TEMPLATES, Counts, EndReason, FLOW_TEMPLATES, FlowRecord, Translation,
};
pub use message::{MessageBuffer, Template};
pub use options::{ExporterStatistics, RandomSampling, STATISTICS_TEMPLATE};

/// The version number in each message.
pub const VERSION: u16 = 10;
/// The UDP port of collectors.
pub const PORT: u16 = 4739;

header! {
    /// The header of a message (RFC 7011, section 3.1). Sets follow.
    ///
    /// ```text
    ///  0                   1                   2                   3
    ///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |       Version Number          |            Length             |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                           Export Time                         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                       Sequence Number                         |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// |                    Observation Domain ID                      |
    /// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
    /// ```
    #[derive(Debug)]
    MessageHeader [16] {
        /// Version, which is [`VERSION`].
        version, set_version: u16 = VERSION_AT @ 0;
        /// Length of the message with this header, in bytes.
        length, set_length: u16 = LENGTH @ 2;
        /// Time at which the message was sent, in seconds since 1970.
        export_time, set_export_time: u32 = EXPORT_TIME @ 4;
        /// Number of data records of this observation domain in earlier messages, modulo 2³².
        sequence, set_sequence: u32 = SEQUENCE @ 8;
        /// The observation domain.
        domain, set_domain: u32 = DOMAIN @ 12;
    }
}

header! {
    /// The header of a set (RFC 7011, section 3.3.2): records of one kind follow.
    #[derive(Debug)]
    SetHeader [4] {
        /// [`SetHeader::TEMPLATES`], [`SetHeader::OPTIONS_TEMPLATES`], or the number of the template
        /// of the data records.
        id, set_id: u16 = ID @ 0;
        /// Length of the set with this header, in bytes.
        length, set_length: u16 = LENGTH @ 2;
    }
}

impl SetHeader {
    /// Identifier of sets of templates.
    pub const TEMPLATES: u16 = 2;
    /// Identifier of sets of options templates.
    pub const OPTIONS_TEMPLATES: u16 = 3;
    /// The least identifier of sets of data records, which is that of their template.
    pub const FIRST_DATA: u16 = 256;
}

header! {
    /// The header of a template record (RFC 7011, section 3.4.1): specifiers of fields follow.
    #[derive(Debug)]
    TemplateHeader [4] {
        /// Identifier of the template.
        id, set_id: u16 = ID @ 0;
        /// Number of fields; 0 withdraws the template.
        field_count, set_field_count: u16 = FIELD_COUNT @ 2;
    }
}

header! {
    /// The specifier of a field (RFC 7011, section 3.2); the number of an enterprise follows if the
    /// first bit is set.
    #[derive(Debug)]
    FieldSpecifier [4] {
        /// Number of the information element, with [`FieldSpecifier::HAS_ENTERPRISE`].
        element, set_element: u16 = ELEMENT @ 0;
        /// Length of the values in bytes; [`FieldSpecifier::VARIABLE`] if each value tells its own.
        length, set_length: u16 = LENGTH @ 2;
    }
}

impl FieldSpecifier {
    /// Bit of the element's number that announces the number of an enterprise.
    pub const HAS_ENTERPRISE: u16 = 0x8000;
    /// Length of values that begin with their own length.
    pub const VARIABLE: u16 = 0xffff;
}
