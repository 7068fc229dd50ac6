//! The mappings of rewriters as records for another instance.

use super::rewriter::{RewriterState, TableHandlers};
use castanet_element::portable_state::{RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_kit::nat::{FlowKey, MappingRecord, Table};

impl<K: TableHandlers> RewriterState<K> {
    /// Writes some mappings, on one worker only, as all share the table.
    pub(super) fn export_mappings(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        let epoch = to.epoch;
        let mut write = |key: FlowKey, until: u64, record: MappingRecord| {
            to.write(&key, &(epoch.offset(until), record));
        };
        if !self.is_primary() {
            return None;
        }
        let export = |table: &Table, from: u64| ((), table.export(self.zone, from, &mut write));
        self.tables.read_part(from, export)?.1
    }

    /// Takes over a mapping.
    pub(super) fn import_mapping(
        &mut self,
        record: &RecordReader,
        cx: &mut Cx,
    ) -> Result<(), ArgError> {
        let (offset, mapping): (i64, MappingRecord) = record.value()?;
        let (key, times) = (record.key()?, (record.epoch.nanos(offset), cx.now().nanos()));
        let outputs = self.handlers.as_ref().map_or(0, |handlers| handlers.outputs);
        let place = (self.zone, outputs);
        match self.table.change(|table| table.import(place, key, mapping, times)) {
            true => Ok(()),
            false => Err(ArgError::new("a mapping has no room here")),
        }
    }

    pub(super) fn remove_mapping(&mut self, record: &RecordReader) {
        if let Ok(key) = record.key() {
            self.tables.change_all(|table| table.remove_flow(self.zone, key));
        }
    }
}
