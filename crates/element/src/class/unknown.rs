//! The class of elements whose class is not known.

use super::{Checksums, Class, Description, Factory, Role, StateSharing, no_nodes};
use crate::element::ByteAccess;
use crate::headers::HeaderEffect;
use crate::spec::Spec;

/// The class of elements whose class is not known: any ports, no arguments, no handlers. A
/// configuration that has such an element is checked, and never run.
pub static UNKNOWN: Class = Class {
    description: Description {
        spec: &Spec {
            class: castanet_lang::UNDECLARED_CLASS,
            doc: "",
            file: "",
            room: None,
            aliases: &[],
            ports: Some("-/-"),
            processing: Some("a/a"),
            flow: Some("x/y"),
            headers: Some(HeaderEffect::Unknown),
            gives: None,
        },
        args: &[],
        on: "any",
        acts_on: "any",
        role: Role::Through,
        fates: &[],
        open_outputs: true,
        reads: Vec::new,
        metrics: Vec::new,
        writes: Vec::new,
        private: &[],
        stops: |_| false,
        runs_timer: |_| false,
        called_by: &[],
        per_worker: false,
        first_output: 0,
        has_unbounded_time: false,
        sharing: StateSharing::PerWorker,
        notifies: false,
        may_watch_none: false,
        notifier: None,
        shows_signal: false,
        checksums: Checksums::Right,
        bypass: &[],
        counts_only: false,
        passes_bursts: false,
        byte_access: ByteAccess::None,
        counts_handled: false,
        lends_bytes: false,
        emits_few: false,
        partner: None,
        ported: None,
        stage: None,
    },
    factory: Factory {
        make: no_nodes,
        program: None,
        declare: None,
        read_config: |_, _, _| None,
        write_config: |_, _, _, _| None,
        argument_handlers: Vec::new,
        device: None,
        resources: None,
        watch: None,
        calls: None,
    },
};

impl Class {
    /// Whether this is the class of elements whose class is not known.
    pub fn is_unknown(&self) -> bool {
        self.spec.class == UNKNOWN.spec.class
    }
}
