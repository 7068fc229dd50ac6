//! Runs a `Source` element, and elements that are sink and source at once.

use super::{
    DuplexRole, Instance, Node, PushRole, SourceRole, ThroughRole, handlers_of_body, keep_view,
    life_of_body,
};
use crate::cx::Cx;
use crate::element::{NextRun, PerBatch, Source};
use crate::error::ArgError;
use crate::exec::Next;
use crate::on::View;
use castanet_packet::Batch;

/// A `Source` element of one worker.
#[repr(align(128))]
pub struct SourceNode<E: Source> {
    body: Instance<E, E::Local>,
}

impl<E: Source> SourceNode<E> {
    pub(crate) fn new(mut body: Instance<E, E::Local>) -> Self {
        body.lend(E::apply_config);
        SourceNode { body }
    }
}

impl<E: Source> SourceRole for SourceNode<E> {
    fn produce(&mut self, n: usize, cx: &mut Cx) -> NextRun {
        self.body.lend(|config, local| config.produce(local, n, cx))
    }
    fn is_active(&self) -> bool {
        self.body.peek(E::is_active)
    }
    fn packets_a_turn(&self) -> usize {
        <E as Source>::packets_a_turn(&self.body.config)
    }
}

impl<E: Source> Node for SourceNode<E> {
    life_of_body!();
    handlers_of_body!(
        |config, local| config.held(local),
        E::can_take_state,
        E::apply_config,
        E::shrink
    );
}

/// An element that is both `PerBatch` and `Source`, with one state.
#[repr(align(128))]
pub struct DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    body: Instance<E, <E as PerBatch>::Local>,
}

impl<E> DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    pub(crate) fn new(mut body: Instance<E, <E as PerBatch>::Local>) -> Self {
        body.lend(<E as PerBatch>::apply_config);
        DuplexNode { body }
    }
}

impl<E> PushRole for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Cx) -> Next {
        if <E::On as View>::NAME != "any" {
            keep_view::<E::On>(batch, cx);
        }
        if !batch.is_empty() {
            let batch = std::mem::take(batch);
            self.body.lend(|config, local| config.batch(local, port, batch, cx));
        }
        Next::None
    }
}

impl<E> ThroughRole for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn is_pulling(&self) -> bool {
        self.body.peek(E::is_pulling)
    }
}

impl<E> SourceRole for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn produce(&mut self, n: usize, cx: &mut Cx) -> NextRun {
        self.body.lend(|config, local| config.produce(local, n, cx))
    }
    fn is_active(&self) -> bool {
        self.body.peek(E::is_active)
    }
    fn packets_a_turn(&self) -> usize {
        <E as Source>::packets_a_turn(&self.body.config)
    }
}

impl<E> DuplexRole for DuplexNode<E> where E: PerBatch + Source<Local = <E as PerBatch>::Local> {}

impl<E> Node for DuplexNode<E>
where
    E: PerBatch + Source<Local = <E as PerBatch>::Local>,
{
    fn init(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        self.body.lend(|config, local| {
            PerBatch::init(config, local, cx)?;
            Source::init(config, local, cx)
        })
    }
    fn start(&mut self, cx: &mut Cx) -> Result<(), ArgError> {
        self.body.lend(|config, local| {
            PerBatch::start(config, local, cx)?;
            Source::start(config, local, cx)
        })
    }
    fn run_timer(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| config.run_timer(local, cx));
    }
    fn offer_claims(&mut self, offered: bool) {
        self.body.lend(|config, local| {
            PerBatch::offer_claims(config, local, offered);
            Source::offer_claims(config, local, offered);
        });
    }
    fn exchange_device(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| {
            PerBatch::exchange_device(config, local, cx);
            Source::exchange_device(config, local, cx);
        });
    }
    fn cleanup(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| {
            PerBatch::cleanup(config, local, cx);
            Source::cleanup(config, local, cx);
        });
    }
    fn held(&self) -> usize {
        self.body.peek(<E as PerBatch>::held)
    }
    fn after_take_state(&mut self, cx: &mut Cx) {
        self.body.lend(|config, local| config.after_take_state(local, cx));
    }
    handlers_of_body!(
        |config, local| PerBatch::held(config, local),
        |now: &E, before: &E| {
            PerBatch::can_take_state(now, before) && Source::can_take_state(now, before)
        },
        <E as PerBatch>::apply_config
    );
}
