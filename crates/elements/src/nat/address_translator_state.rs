//! State of `AddressTranslator`: the bindings of its pool.

use super::address_translator_args::RefusalReports;
use super::metrics;
use castanet_element::portable_state::{PortableState, RecordReader, RecordWriter};
use castanet_element::prelude::*;
use castanet_kit::nat6::{Bindings, Config};
use std::sync::Arc;

/// Dynamic mappings, and reports that are due.
#[derive(Default, Local)]
#[local(methods)]
#[portable(bindings)]
pub struct AddressTranslatorState {
    pub(super) bindings: Bindings,
    /// The pool of the bindings, for those that come from another instance.
    pub(super) plan: Option<Arc<Config>>,
    pub(super) reports: RefusalReports,
}

#[handlers]
impl AddressTranslatorState {
    /// Number of addresses or ports of the pool in use.
    #[read]
    #[metric(metrics::BINDINGS)]
    fn count(&self) -> usize {
        self.bindings.len()
    }
}

/// The bindings, by their places in the pool.
impl PortableState for AddressTranslatorState {
    const IS_TABLE: bool = true;

    fn export(&self, from: u64, to: &mut RecordWriter) -> Option<u64> {
        self.bindings.export(from, |place, binding, used| {
            let used = to.epoch.offset(used);
            to.write(&place.to_be_bytes(), &(binding, used));
        })
    }

    fn import(&mut self, record: &RecordReader, cx: &mut Cx) -> Result<(), ArgError> {
        let (binding, used) = record.value()?;
        let place = u32::from_be_bytes(record.key()?);
        let used = record.epoch.nanos(used).min(cx.now().nanos());
        let plan = self.plan.as_deref();
        match plan.is_some_and(|plan| self.bindings.import(plan, place, binding, used)) {
            true => Ok(()),
            false => Err(ArgError::new("the pool is another one here")),
        }
    }
}
