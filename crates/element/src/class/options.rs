//! Declarations of a class that its trait does not make: constants add them to a [`Class`].

use super::*;
use crate::class::{
    Checksums, FindCalls, FindDevice, FindStores, Partner, StageKind, StageType, StateSharing,
};
use crate::element::{ByteAccess, Control, Describe};

impl Class {
    /// The same class, whose elements also run a program on the control thread,
    /// made of the same arguments.
    pub const fn with_program<E: Control>(mut self) -> Class {
        self.factory.program = control::<E>().factory.program;
        self
    }

    /// The same class, for elements without ports; those with ports are of that
    /// other one.
    pub const fn or_with_ports(mut self, ported: &'static Class) -> Class {
        self.description.ported = Some(ported);
        self
    }

    /// The same class, with the device that an element of it stands for: a
    /// source may then run on several workers, with queues of its own on each.
    pub const fn with_device(mut self, device: FindDevice) -> Class {
        self.factory.device = Some(device);
        self
    }

    /// The same class, for elements that need the resources outside of the process that `find` names.
    pub const fn with_resources(mut self, find: FindResources) -> Class {
        self.factory.resources = Some(find);
        self
    }

    /// The same class, for elements that want to know how full stores are: those
    /// that `find` names, or, if it names none, those next to it downstream, or
    /// upstream where it is pulled.
    pub const fn with_watch(mut self, find: FindStores) -> Class {
        self.factory.watch = Some(find);
        self
    }

    /// The same class, for elements that act on packets of a view alone, and let others pass, or have an
    /// output for them if they give the view.
    pub const fn acts_on(mut self, view: &'static str) -> Class {
        self.description.acts_on = view;
        self
    }

    /// The same class, for elements that also work where there is no store to watch.
    pub const fn may_watch_none(mut self) -> Class {
        self.description.may_watch_none = true;
        self
    }

    /// The same class, for elements that have a notifier of packets in Click.
    pub const fn with_notifier(mut self, order: NotifierOrder) -> Class {
        self.description.notifier = Some(order);
        self
    }

    /// The same class, for elements without other handlers that show the signal next to them.
    pub const fn with_signal(mut self) -> Class {
        self.description.shows_signal = true;
        self.description.reads = || vec![SIGNAL];
        self
    }

    /// The same class, for elements that work with another one, whose name they find in
    /// [`Setup::partner`](crate::setup::Setup::partner).
    pub const fn with_partner(mut self, partner: Partner) -> Class {
        self.description.partner = Some(partner);
        self
    }

    /// The same class, for elements that write handlers in the middle of their packets' way
    /// ([`Cx::call`](crate::cx::Cx::call)), which `find` names: what they do to any element holds
    /// for the next packet.
    pub const fn with_calls(mut self, find: FindCalls) -> Class {
        self.factory.calls = Some(find);
        self
    }

    /// The same class, for elements to which these handlers give such calls, too.
    pub const fn with_calls_by(mut self, handlers: &'static [&'static str]) -> Class {
        self.description.called_by = handlers;
        self
    }

    /// The same class, for elements to which packets may come with checksums
    /// that are left to who sends them.
    pub const fn with_checksums(mut self, checksums: Checksums) -> Class {
        self.description.checksums = checksums;
        self
    }

    /// The same class, for sources that hand packets straight to elements of these classes, by
    /// [`Cx::bypass`](crate::cx::Cx::bypass), where those come next or behind elements that only count packets.
    pub const fn with_bypass(mut self, classes: &'static [&'static str]) -> Class {
        self.description.bypass = classes;
        self
    }

    /// The same class, for elements whose state is an [`RwShared`](crate::shared::RwShared).
    pub const fn with_rw_shared_state(mut self) -> Class {
        self.description.sharing = StateSharing::ReadShared;
        self
    }

    /// The same class, for sources that also hand over packets past elements that [handle their
    /// bytes](crate::element::PerPacket::handle_bytes).
    pub const fn with_lent_bytes(mut self) -> Class {
        self.description.lends_bytes = true;
        self
    }

    /// The same class, for elements that few of a router's packets leave, such as errors and answers: where these come back
    /// into its path, a fused chain goes on.
    pub const fn with_few_packets(mut self) -> Class {
        self.description.emits_few = true;
        self
    }

    pub(super) const fn handling_bytes(mut self, access: ByteAccess, counts: bool) -> Class {
        self.description.byte_access = access;
        self.description.counts_handled = counts;
        self
    }

    pub(super) const fn passing_bursts(mut self, passes_bursts: bool) -> Class {
        self.description.passes_bursts = passes_bursts;
        self
    }

    pub(super) const fn counting_only(mut self, counts_only: bool) -> Class {
        self.description.counts_only = counts_only;
        self
    }

    pub(super) const fn locked_if(mut self, locked: bool) -> Class {
        self.description.sharing =
            if locked { StateSharing::Locked } else { self.description.sharing };
        self
    }

    /// The same class, whose elements are of type `E` and can be in fused chains.
    pub(super) const fn in_chains<E: Describe>(mut self, kind: Option<StageKind>) -> Class {
        self.description.stage = match kind {
            Some(kind) => Some(StageType { kind, path: std::any::type_name::<E> }),
            None => None,
        };
        self
    }

    /// The same class, for elements that begin and end on each worker.
    pub(super) const fn on_each(mut self, each: bool) -> Class {
        self.description.per_worker = each;
        self
    }

    /// The same class, for elements that may take any time for one packet or one handler.
    pub const fn with_unbounded_time(mut self) -> Class {
        self.description.has_unbounded_time = true;
        self
    }

    /// The same class, for elements of which one output comes before output 0: where a burst has
    /// packets for both, those of this one go on first.
    pub const fn with_first_output(mut self, output: u8) -> Class {
        self.description.first_output = output;
        self
    }

    /// The same class, for programs that move tasks between workers.
    pub const fn moves_tasks(mut self) -> Class {
        self.factory.declare = Some(|_, _, facts| {
            facts.balanced = true;
            Ok(())
        });
        self
    }
}
