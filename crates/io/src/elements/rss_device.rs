//! A device with an RSS redirection table, as `DeviceBalancer` sees it by the handlers of its element.

use super::device_balancer_args::DeviceBalancerArgs;
use castanet_element::prelude::*;

/// Two numbers of a line.
pub(super) fn pair<A: std::str::FromStr, B: std::str::FromStr>(line: &str) -> Option<(A, B)> {
    let (a, b) = line.split_once(' ')?;
    Some((a.parse().ok()?, b.trim().parse().ok()?))
}

/// The device, as its element's handlers show it.
pub(super) struct RssDevice {
    name: String,
    /// A queue of each worker that receives, and the worker.
    pub(super) workers: Vec<(u16, usize)>,
    table: Vec<u16>,
}

impl RssDevice {
    /// Reads the handlers of the element DEV; at most CPUS workers count.
    ///
    /// # Errors
    /// The device has no table, or no worker receives from it.
    pub(super) fn read(
        args: &DeviceBalancerArgs,
        control: &mut dyn ControlContext,
    ) -> Result<RssDevice, ArgError> {
        let name = args.dev.clone();
        let table = Vec::<u16>::from_arg(
            control.read(&format!("{name}.rss_reta"))?.trim(),
            &Names::default(),
        )
        .unwrap_or_default();
        if table.is_empty() {
            let help = "a `FromDevice` has one with RSS_AGGREGATE and several workers (-j), a \
                        `FromDPDKDevice` with MODE rss and a driver that has one";
            return Err(ArgError::new(format!("'{name}' has no redirection table")).help(help));
        }
        let mut workers: Vec<(u16, usize)> = Vec::new();
        for (queue, worker) in
            control.read(&format!("{name}.queue_workers"))?.lines().filter_map(pair)
        {
            if workers.iter().all(|it| it.1 != worker) {
                workers.push((queue, worker));
            }
        }
        let mut device = RssDevice { name, workers, table };
        device.workers.truncate(device.most(args.cpus));
        match device.workers.is_empty() {
            true => Err(ArgError::new(format!("no worker receives from '{}'", device.name))),
            false => Ok(device),
        }
    }

    /// Number of workers that an argument stands for.
    pub(super) fn most(&self, argument: i32) -> usize {
        usize::try_from(argument)
            .map_or(self.workers.len(), |it| it.clamp(1, self.workers.len().max(1)))
    }

    /// Number of entries to choose queues for.
    pub(super) fn buckets(&self, args: &DeviceBalancerArgs) -> usize {
        let all = self.table.len();
        args.reta_size.map_or(all, |size| size.clamp(1, all))
    }

    /// Whether it has this queue.
    pub(super) fn has(&self, queue: u16) -> bool {
        self.workers.iter().any(|it| it.0 == queue)
    }

    /// The worker that receives from a queue.
    pub(super) fn worker_of(&self, queue: u16) -> usize {
        self.workers.iter().find(|it| it.0 == queue).map_or(usize::MAX, |it| it.1)
    }

    /// Share of a queue's descriptors that hold packets.
    pub(super) fn occupancy(
        &self,
        queue: u16,
        control: &mut dyn ControlContext,
    ) -> Result<f64, ArgError> {
        let number = |text: String| text.trim().parse::<f64>().unwrap_or(0.0);
        let waiting = number(control.read(&format!("{}.queue_count {queue}", self.name))?);
        let all = number(control.read(&format!("{}.nb_rx_desc", self.name))?);
        Ok((waiting / all.max(1.0)).min(1.0))
    }

    /// Writes a table, unless the device has it already.
    pub(super) fn write(
        &self,
        table: &[u16],
        control: &mut dyn ControlContext,
    ) -> Result<(), ArgError> {
        let all: Vec<u16> = table.iter().copied().cycle().take(self.table.len()).collect();
        if all == self.table {
            return Ok(());
        }
        let text: Vec<String> = all.iter().map(u16::to_string).collect();
        control.write(&format!("{}.rss_reta", self.name), &text.join(" "))
    }
}
