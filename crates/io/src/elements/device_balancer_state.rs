//! The steps of `DeviceBalancer`: measures loads, chooses the redirection table, writes it.

use super::device_balancer_args::{DeviceBalancerArgs, LoadMeasure, LoadTarget, RssMethod};
use super::rss_device::{RssDevice, pair};
use castanet_element::control::{ControlWaker, Loads};
use castanet_element::prelude::*;
use castanet_kit::rss::{QueueChange, QueueLoad, RssParams, even_table, imbalance, vacate};
use std::fmt::Write;

/// Number of lines of `run_stats`.
const RUNS: usize = 10;
/// Loads from which on a worker counts as being at its limit.
const FULL: f64 = 0.98;

/// The table of `DeviceBalancer`, and what it has measured.
#[derive(Default, Local)]
#[local(methods)]
pub struct DeviceBalancerState {
    /// Has the program go on that waits until it is active.
    waker: Option<ControlWaker>,
    active: bool,
    autoscale: bool,
    interval: Duration,
    /// The queue of each entry, as last chosen; there are none before the first step.
    table: Vec<u16>,
    /// The queues in use.
    queues: Vec<u16>,
    /// Counts of packets by aggregate at the last step.
    counts: Vec<u64>,
    /// Processor times at the last step, and its time.
    before: Option<(Loads, Time)>,
    /// The loads of the queues in use, as measured last.
    loads: Vec<QueueLoad>,
    /// Number of entries moved.
    moves: u64,
    runs: u64,
    /// Sums over all runs: of the imbalance that was left, and of the microseconds taken.
    imbalance: f64,
    microseconds: u64,
    last_error: String,
}

#[handlers]
impl DeviceBalancerState {
    /// Whether it acts.
    #[read]
    fn active(&self) -> bool {
        self.active
    }

    /// Sets whether it acts.
    #[write(active)]
    fn set_active(&mut self, text: &str) -> Result<(), ArgError> {
        self.active = bool::from_arg(text.trim(), &Names::default())?;
        self.before = None;
        self.waker.iter().for_each(ControlWaker::wake);
        Ok(())
    }

    /// Whether workers are added and removed by the load.
    #[read]
    fn autoscale(&self) -> bool {
        self.autoscale
    }

    /// Sets whether workers are added and removed by the load.
    #[write(autoscale)]
    fn set_autoscale(&mut self, text: &str) -> Result<(), ArgError> {
        self.autoscale = bool::from_arg(text.trim(), &Names::default())?;
        Ok(())
    }

    /// The queues in use and the loads of their workers as measured last, one a line.
    #[read]
    fn loads(&self) -> String {
        self.loads.iter().fold(String::new(), |mut text, it| {
            _ = writeln!(text, "{} {:.3}", it.queue, it.load);
            text
        })
    }

    /// Number of entries of the redirection table that it has moved.
    #[read]
    fn moves(&self) -> u64 {
        self.moves
    }

    /// Ten lines as in FastClick, of which the first has values: its number, steps that moved
    /// entries, the mean imbalance that they left, and the mean of the microseconds that they took.
    #[read]
    fn run_stats(&self) -> String {
        let mut text = match self.runs {
            0 => "0 0 nan nan\n".to_owned(),
            runs => {
                let (imbalance, time) =
                    (self.run_stats_imbalance_first(), self.run_stats_time_first());
                format!("0 {runs} {imbalance} {time}\n")
            }
        };
        (1..RUNS).for_each(|line| _ = writeln!(text, "{line} 0 nan nan"));
        text
    }

    /// The mean imbalance that steps have left.
    #[read]
    fn run_stats_imbalance_first(&self) -> String {
        match self.runs {
            0 => "nan".to_owned(),
            runs => (self.imbalance / runs as f64).to_string(),
        }
    }

    /// The mean of the microseconds that steps have taken.
    #[read]
    fn run_stats_time_first(&self) -> u64 {
        self.microseconds.checked_div(self.runs).unwrap_or(0)
    }
}

impl DeviceBalancerState {
    /// Takes the values of arguments that handlers change.
    pub(super) fn begin(&mut self, args: &DeviceBalancerArgs, waker: ControlWaker) {
        self.waker = Some(waker);
        self.active = args.active;
        self.autoscale = args.autoscale;
        self.interval = least_interval(args);
    }

    pub(super) fn is_active(&self) -> bool {
        self.active
    }

    /// Time until the next step.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Writes an error, unless it is the one written last.
    pub(super) fn report(&mut self, error: &ArgError, control: &mut dyn ControlContext) {
        let text = control.words(error);
        if self.last_error != text {
            control.chatter(&format!("{}: {text}\n", control.label()));
            self.last_error = text;
        }
    }

    /// One step.
    pub(super) fn balance(
        &mut self,
        args: &DeviceBalancerArgs,
        control: &mut dyn ControlContext,
    ) -> Result<(), ArgError> {
        let begun = control.peek();
        let device = RssDevice::read(args, control)?;
        let is_other = self.table.len() != device.buckets(args);
        if is_other || self.queues.iter().any(|it| !device.has(*it)) {
            let first = device.most(args.startcpu).min(device.workers.len());
            self.queues = device.workers[..first].iter().map(|it| it.0).collect();
            self.table = even_table(device.buckets(args), &self.queues);
        }
        let packets = self.new_packets(args, control)?;
        let Some(mut loads) = self.measure(args, &device, control)? else {
            return device.write(&self.table, control);
        };
        self.loads.clone_from(&loads);
        if args.verbose > 1 {
            let all = loads.iter().map(|it| format!(" {:.3}", it.load)).collect::<String>();
            control.chatter(&format!("{}: load{all}\n", control.name()));
        }
        if args.target == LoadTarget::Balance {
            to_ratios(&mut loads, device.workers.len());
        }
        let moved = self.choose(args, &device, &packets, &mut loads);
        device.write(&self.table, control)?;
        let left = imbalance(&loads);
        self.adapt(args, left, moved);
        if moved > 0 {
            let time = (control.peek() - begun).as_micros() as u64;
            (self.runs, self.moves) = (self.runs + 1, self.moves + moved as u64);
            (self.imbalance, self.microseconds) = (self.imbalance + left, self.microseconds + time);
            if args.verbose > 0 && args.method == RssMethod::RssPlusPlus {
                let (name, queues) = (control.name().to_owned(), self.queues.len());
                let text = format!(
                    "{name}: {moved} entries moved, {queues} queues, imbalance {left:.3}\n"
                );
                control.chatter(&text);
            }
        }
        self.last_error.clear();
        Ok(())
    }

    /// Chooses the table; returns the number of entries moved.
    fn choose(
        &mut self,
        args: &DeviceBalancerArgs,
        device: &RssDevice,
        packets: &[u64],
        loads: &mut Vec<QueueLoad>,
    ) -> usize {
        let params = RssParams {
            target_load: args.target_load,
            threshold: args.imbalance_threshold,
            alpha: args.imbalance_alpha,
        };
        match args.method {
            RssMethod::Rss => 0,
            RssMethod::RoundRobin => {
                let next =
                    |queue: u16| self.queues.iter().position(|it| *it == queue).unwrap_or(0) + 1;
                let queues: Vec<usize> = self.table.iter().map(|it| next(*it)).collect();
                let queues = queues.into_iter().map(|it| self.queues[it % self.queues.len()]);
                self.table = queues.collect();
                self.table.len()
            }
            RssMethod::RssPlusPlus => {
                let scaling = match self.autoscale {
                    true => params.scaling(loads),
                    false => QueueChange::Keep,
                };
                if let QueueChange::Remove(at) = scaling {
                    let left = loads.remove(at);
                    self.queues.retain(|queue| *queue != left.queue);
                    return vacate(&mut self.table, packets, left, loads);
                }
                let free = device.workers.iter().find(|(queue, _)| !self.queues.contains(queue));
                if let (QueueChange::Add, Some(&(queue, _))) = (scaling, free) {
                    self.queues.push(queue);
                    loads.push(QueueLoad { queue, load: 0.0 });
                }
                params.rebalance(&mut self.table, packets, loads)
            }
        }
    }

    /// Packets of each entry since the last step.
    fn new_packets(
        &mut self,
        args: &DeviceBalancerArgs,
        control: &mut dyn ControlContext,
    ) -> Result<Vec<u64>, ArgError> {
        let mut packets = vec![0; self.table.len()];
        let Some(counter) = &args.rsscounter else { return Ok(packets) };
        let dump = control.read(&format!("{counter}.dump"))?;
        for (aggregate, count) in dump.lines().filter_map(pair::<usize, u64>) {
            if self.counts.len() <= aggregate {
                self.counts.resize(aggregate + 1, 0);
            }
            let before = std::mem::replace(&mut self.counts[aggregate], count);
            // A counter that was cleared begins anew.
            packets[aggregate % self.table.len()] += count.checked_sub(before).unwrap_or(count);
        }
        Ok(packets)
    }

    /// The loads of the queues in use since the last step; `None` if there was none.
    fn measure(
        &mut self,
        args: &DeviceBalancerArgs,
        device: &RssDevice,
        control: &mut dyn ControlContext,
    ) -> Result<Option<Vec<QueueLoad>>, ArgError> {
        let (now, time) = (control.loads(), control.peek());
        let Some((before, then)) = self.before.replace((now.clone(), time)) else {
            return Ok(None);
        };
        let passed = (time - then).as_secs_f64();
        let share = |of: fn(&Loads) -> &[Duration], worker: usize| {
            let used = |loads: &Loads| of(loads).get(worker).copied().unwrap_or_default();
            used(&now).saturating_sub(used(&before)).as_secs_f64() / passed.max(1e-9)
        };
        let mut loads = Vec::new();
        for &queue in &self.queues {
            let worker = device.worker_of(queue);
            let load = match args.cycles {
                LoadMeasure::RealCpu => share(|it| &it.spent, worker),
                LoadMeasure::Queue => device.occupancy(queue, control)?,
                _ => share(|it| &it.busy, worker),
            };
            loads.push(QueueLoad { queue, load: load.min(1.0) });
        }
        let full = loads.iter().filter(|it| it.load > FULL).count();
        if args.cycles == LoadMeasure::CyclesQueue && full > 1 {
            for it in &mut loads {
                it.load = it.load * 0.9 + device.occupancy(it.queue, control)? * 0.1;
            }
        }
        Ok(Some(loads))
    }

    /// Steps are more frequent the more imbalance is left.
    fn adapt(&mut self, args: &DeviceBalancerArgs, left: f64, moved: usize) {
        let least = least_interval(args);
        let most = args.timer_max.map_or(least, |it| Duration::from_millis(it.into())).max(least);
        self.interval = match (left, moved) {
            (left, _) if left > 0.4 => least,
            (left, _) if left > 0.2 => self.interval / 2,
            (_, 0) => self.interval * 2,
            _ => self.interval,
        };
        self.interval = self.interval.clamp(least, most);
    }
}

fn least_interval(args: &DeviceBalancerArgs) -> Duration {
    Duration::from_millis(args.timer.into())
}

/// Makes loads half their ratios to the mean of all workers, so that 0.5 is the mean.
fn to_ratios(loads: &mut [QueueLoad], workers: usize) {
    let mean = loads.iter().map(|it| it.load).sum::<f64>() / workers.max(1) as f64;
    for it in loads {
        it.load = if mean < 0.1 { 0.5 } else { (it.load / mean / 2.0).min(1.0) };
    }
}
