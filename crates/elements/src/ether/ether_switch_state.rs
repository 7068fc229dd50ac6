//! The table of addresses that an `EtherSwitch` has learnt.

use castanet_element::handler::Sums;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_kit::mac_table::{MacTable, listing};

/// The table of learnt addresses.
#[derive(Default, Local)]
#[local(methods)]
#[portable(addresses)]
pub struct EtherSwitchState {
    pub(super) table: MacTable,
}

#[handlers]
impl EtherSwitchState {
    /// Learnt addresses and their ports, a line each.
    #[read]
    fn table(&self) -> Value {
        Value::common(Sums::new(self.table.packed(), listing))
    }
}

/// Learnt addresses, their ports and the times of their latest frames.
impl PortableState for EtherSwitchState {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        self.table.export(from, |mac, port, last_seen| {
            let last_seen = to.epoch.offset(last_seen);
            to.write(&mac, &(port, last_seen));
        })
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (port, last_seen) = record.value()?;
        let last_seen = record.epoch.nanos(last_seen).min(cx.now().nanos());
        match self.table.import(record.key()?, port, last_seen) {
            true => Ok(()),
            false => Err(ArgError::new("the table of addresses is full")),
        }
    }

    fn remove(&mut self, record: &RecordReader) {
        if let Ok(mac) = record.key() {
            self.table.forget(mac);
        }
    }
}
