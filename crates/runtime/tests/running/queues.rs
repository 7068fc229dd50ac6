//! Elements with a device of several queues.

use crate::elements::make_packets;
use castanet_element::class::{Class, per_batch, source};
use castanet_element::device;
use castanet_element::prelude::*;

/// Has a packet in each of its device's queues for as often as it is told.
#[derive(Element)]
#[element(args = QueuesArgs)]
struct Queues {
    args: QueuesArgs,
    shares: Vec<QueueShare>,
}

#[derive(Args)]
struct QueuesArgs {
    /// The device.
    #[arg]
    device: String,
    /// How many queues it has.
    #[arg]
    queues: usize,
    /// How many packets come to each.
    #[arg]
    each: u64,
}

#[derive(Default, Local)]
struct PollState {
    /// How often this has begun.
    #[read]
    begun: u64,
    /// Packets.
    #[read]
    count: u64,
}

impl Build for Queues {
    type Args = QueuesArgs;
    fn build(args: QueuesArgs, setup: &Setup) -> Result<Self, ArgError> {
        Ok(Queues { args, shares: setup.queue_shares.to_vec() })
    }
}

impl Source for Queues {
    type Local = PollState;
    type Fate = ();
    const PER_WORKER: bool = true;
    fn init(&self, local: &mut PollState, _: &mut Cx) -> Result<(), ArgError> {
        local.begun += 1;
        Ok(())
    }
    fn produce(&self, local: &mut PollState, n: usize, cx: &mut Cx) -> NextRun {
        let mine = self.shares.iter().find(|share| share.worker == cx.worker());
        let all = mine.map_or(0, |share| share.queues.len() as u64 * self.args.each);
        make_packets(&mut local.count, all, n, cx)
    }
}

fn queues_device(config: &str, names: &Names) -> Option<device::Device> {
    let it = <QueuesArgs as Args>::parse(config, names).ok()?;
    Some(device(it.device, Some(0), it.queues, it.queues))
}

fn device(name: String, first: Option<usize>, least: usize, most: usize) -> device::Device {
    let queues = device::Queues { first, least, most, sockets: false };
    let (how, rx_threads) = (String::new(), device::RxThreads::default());
    device::Device { name, how, node: None, queues, rx_threads }
}

/// Ends packets, on a queue of a device.
#[derive(Element)]
#[element(ports = "1/0")]
struct Outlet {
    /// The device.
    #[arg]
    device: String,
    /// How many queues it has.
    #[arg]
    queues: usize,
}

impl PerBatch for Outlet {
    type On = on::Any;
    type Local = PollState;
    type Fate = Never;
    const PER_WORKER: bool = true;
    fn init(&self, local: &mut PollState, _: &mut Cx) -> Result<(), ArgError> {
        local.begun += 1;
        Ok(())
    }
    fn batch(&self, local: &mut PollState, _: usize, batch: Batch, cx: &mut Cx) {
        local.count += batch.len() as u64;
        cx.consume(batch);
    }
}

fn outlet_device(config: &str, names: &Names) -> Option<device::Device> {
    let it = <Outlet as Args>::parse(config, names).ok()?;
    Some(device(it.device, None, 1, it.queues))
}

pub(crate) static CLASSES: &[Class] = &[
    source::<Queues>().with_device(queues_device),
    per_batch::<Outlet>().with_device(outlet_device),
];
