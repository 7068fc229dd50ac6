//! The arguments that select the workers and the queues by which a device is received from.

use castanet_element::device::{Queues, RxThreads};
use castanet_element::prelude::*;

/// Whether both lists give the same queues to the same workers; false if they are empty.
pub(super) fn same_shares(these: &[QueueShare], those: &[QueueShare]) -> bool {
    let has = |share: &QueueShare| (share.worker, share.queues.clone());
    !these.is_empty() && these.iter().map(has).eq(those.iter().map(has))
}

/// The arguments that select the workers that receive.
#[derive(Args, Clone)]
pub(crate) struct RxPlacementArgs {
    /// The smallest number of queues to receive from, even with fewer workers.
    #[arg(keyword, default = 1)]
    minqueues: u16,
    /// The largest number of queues to receive from, even with more workers; 0 for
    /// as many as the device has.
    #[arg(keyword, default = 0)]
    maxqueues: u16,
    /// The largest number of workers that receive; -1 for this device's share of the
    /// workers to which no `StaticThreadSched` assigns another element.
    #[arg(keyword, default = -1, range = -1..=65535)]
    maxthreads: i32,
    /// Number of these workers to skip; -1 to let the engine choose.
    #[arg(keyword, default = -1, range = -1..=65535)]
    threadoffset: i32,
    /// Whether only workers at the device's NUMA node receive.
    #[arg(keyword, default = true)]
    numa: bool,
    /// The device's NUMA node; -1 for the node that the kernel reports.
    #[arg(keyword, default = -1, range = -1..=65535)]
    numa_node: i32,
    /// Whether the workers are divided among the devices (share), or each worker
    /// receives from all of them (parallel).
    #[arg(keyword, default = Scale::share)]
    scale: Scale,
    /// The amount of output about queues, in FastClick; ignored here, see `castanet explain`.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    verbose: u32,
}

/// The division of workers among devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "the manual shows the name as users write it")]
pub(crate) enum Scale {
    /// Each device has a share of the workers.
    share,
    /// Each device has all workers.
    parallel,
}

impl FromArg for Scale {
    const SYNTAX: &'static str = "share or parallel";

    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match text.to_ascii_lowercase().as_str() {
            "share" => Ok(Scale::share),
            "parallel" => Ok(Scale::parallel),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Self::SYNTAX))
                .click(format!("Unknown scaling mode {text} !"))),
        }
    }
}

/// The value of an argument that is -1 if it is not given.
pub(super) fn nonnegative(number: i32) -> Option<usize> {
    usize::try_from(number).ok()
}

impl RxPlacementArgs {
    /// The workers that receive.
    pub(super) fn rx_threads(&self) -> RxThreads {
        RxThreads {
            most: nonnegative(self.maxthreads).filter(|&most| most > 0),
            offset: nonnegative(self.threadoffset),
            numa: self.numa,
            parallel: self.scale == Scale::parallel,
        }
    }

    /// The device's NUMA node: NUMA_NODE, or else `found`, the node that the kernel reports.
    pub(super) fn node(&self, found: Option<usize>) -> Option<usize> {
        nonnegative(self.numa_node).or(found)
    }

    /// The queues to receive from, by the arguments QUEUE (`first`) and N_QUEUES (`count`). If only
    /// QUEUE is given, that queue alone.
    pub(super) fn queues(
        &self,
        first: Option<usize>,
        count: Option<usize>,
        of: AvailableQueues,
    ) -> Queues {
        let (low, high) = match (count, first, of) {
            (Some(count), ..) => (count, count),
            (None, Some(_), AvailableQueues::All(_) | AvailableQueues::UpTo(_)) => (1, 1),
            (None, None, AvailableQueues::All(all)) => (all, all),
            (None, _, AvailableQueues::UpTo(most)) => (1, most),
            (None, _, AvailableQueues::Sockets) => (1, usize::MAX),
        };
        let most = if self.maxqueues > 0 { high.min(self.maxqueues.into()) } else { high }.max(1);
        let least = low.max(self.minqueues.into()).min(most);
        let first = if let AvailableQueues::UpTo(_) = of { first } else { first.or(Some(0)) };
        Queues { first, least, most, sockets: matches!(of, AvailableQueues::Sockets) }
    }
}

/// The queues that a device offers to receive from.
#[derive(Clone, Copy)]
pub(super) enum AvailableQueues {
    /// This number of queues, and packets arrive at all of them.
    All(usize),
    /// The number of queues that is asked for, up to this one.
    UpTo(usize),
    /// No queues: a socket for each worker.
    Sockets,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queues(
        text: &str,
        first: Option<usize>,
        count: Option<usize>,
        of: AvailableQueues,
    ) -> Queues {
        let placement = <RxPlacementArgs as Args>::parse(text, &Names::default()).unwrap();
        placement.queues(first, count, of)
    }

    #[test]
    fn number_of_queues_follows_the_arguments_within_the_device_limits() {
        let all = |text, first, count| {
            let it = queues(text, first, count, AvailableQueues::All(4));
            (it.first, it.least, it.most)
        };
        assert_eq!(all("", None, None), (Some(0), 4, 4));
        assert_eq!(all("MAXQUEUES 2", None, None), (Some(0), 2, 2));
        assert_eq!(all("", Some(2), None), (Some(2), 1, 1));
        assert_eq!(all("", Some(1), Some(3)), (Some(1), 3, 3));
        let up_to = |text, first, count| {
            let it = queues(text, first, count, AvailableQueues::UpTo(16));
            (it.first, it.least, it.most)
        };
        assert_eq!(up_to("", None, None), (None, 1, 16));
        assert_eq!(up_to("MINQUEUES 4, MAXQUEUES 8", None, None), (None, 4, 8));
        assert_eq!(up_to("", Some(3), None), (Some(3), 1, 1));
        assert_eq!(up_to("", None, Some(2)), (None, 2, 2));
        assert!(queues("", None, None, AvailableQueues::Sockets).sockets);
    }

    #[test]
    fn rx_threads_follow_the_arguments() {
        let rx_threads = |text: &str| {
            <RxPlacementArgs as Args>::parse(text, &Names::default()).unwrap().rx_threads()
        };
        assert_eq!(rx_threads(""), RxThreads::default());
        let all = rx_threads("MAXTHREADS 2, THREADOFFSET 1, NUMA false, SCALE parallel");
        let want = RxThreads { most: Some(2), offset: Some(1), numa: false, parallel: true };
        assert_eq!(all, want);
        let wrong =
            <RxPlacementArgs as Args>::parse("SCALE both", &Names::default()).err().unwrap();
        assert_eq!(wrong[0].message(), "SCALE: `both` is not share or parallel");
    }
}
