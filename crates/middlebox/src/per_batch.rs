//! `Middlebox` at work: its bursts, timers and changes of configuration.

use crate::burst::now;
use crate::exit::Exit;
use crate::middlebox::Middlebox;
use crate::packet_log::LogFile;
use crate::rule_set::NonIpPolicy;
use crate::state::MiddleboxState;
use castanet_element::prelude::*;

impl PerBatch for Middlebox {
    type On = on::Any;
    type Local = MiddleboxState;
    type Fate = Exit;

    fn init(&self, state: &mut MiddleboxState, cx: &mut Cx) -> Result<(), ArgError> {
        state.is_primary = true;
        self.log.file.as_ref().map_or(Ok(()), LogFile::open)?;
        state.set_export(self.export, cx)
    }

    fn after_take_state(&self, state: &mut MiddleboxState, cx: &mut Cx) {
        state.find_missing_rules(now(cx));
        if let Err(error) = state.set_export(self.export, cx) {
            cx.report(&error.message());
        }
    }

    fn cleanup(&self, state: &mut MiddleboxState, cx: &mut Cx) {
        state.end_export(cx);
        self.fragments.clear::<Exit>(cx);
    }

    fn held(&self, state: &MiddleboxState) -> usize {
        if state.is_primary { self.fragments.held() } else { 0 }
    }

    fn apply_config(&self, state: &mut MiddleboxState) {
        let connections = (&self.connections, self.limit);
        let is_exported = self.export.is_some();
        state.update(&self.active_rules, connections, &self.fragments, is_exported);
    }

    fn merged_config(&self, before: &Self) -> Option<Self> {
        let Middlebox { active_rules, connections, fragments, .. } = before.clone();
        let rules = self.active_rules.replacing(&active_rules);
        let active_rules = rules.unwrap_or_else(|| self.active_rules.clone());
        Some(Middlebox { active_rules, connections, fragments, ..self.clone() })
    }

    fn run_timer(&self, state: &mut MiddleboxState, cx: &mut Cx) {
        state.wake(cx);
    }

    fn batch(&self, state: &mut MiddleboxState, port: usize, batch: Batch, cx: &mut Cx) {
        let rules = self.active_rules.rules();
        let is_idle = rules.is_empty() && rules.other == NonIpPolicy::Accept;
        if is_idle || !self.interfaces.is_enabled(port) {
            cx.emit_batch(Exit::Out(port as u8), batch);
            return;
        }
        self.hook(port, now(cx), true).process_burst(state, batch, cx);
    }
}
