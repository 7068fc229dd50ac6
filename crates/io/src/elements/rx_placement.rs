//! Which workers receive from a device, and by which queues, as arguments say it.

use castanet_element::device::{Queues, RxThreads};
use castanet_element::prelude::*;

/// Whether the same workers, and some at all, have the same queues.
pub(super) fn same_shares(these: &[QueueShare], those: &[QueueShare]) -> bool {
    let has = |share: &QueueShare| (share.worker, share.queues.clone());
    !these.is_empty() && these.iter().map(has).eq(those.iter().map(has))
}

/// How the workers that receive are found.
#[derive(Args, Clone)]
pub(crate) struct RxPlacementArgs {
    /// Fewest queues to receive from, however few the workers.
    #[arg(keyword, default = 1)]
    minqueues: u16,
    /// Most queues to receive from, however many the workers; 0 for as many
    /// as the device has.
    #[arg(keyword, default = 0)]
    maxqueues: u16,
    /// Most workers to receive with; -1 for this device's share of those that
    /// no `StaticThreadSched` has given something else to do.
    #[arg(keyword, default = -1, range = -1..=65535)]
    maxthreads: i32,
    /// How many of these workers to pass over; -1 to leave it to the engine.
    #[arg(keyword, default = -1, range = -1..=65535)]
    threadoffset: i32,
    /// Whether to receive with workers at the device's NUMA node.
    #[arg(keyword, default = true)]
    numa: bool,
    /// The NUMA node that the device is at; -1 for what the machine says.
    #[arg(keyword, default = -1, range = -1..=65535)]
    numa_node: i32,
    /// Whether the workers are divided among the devices, or each worker
    /// receives from all of them.
    #[arg(keyword, default = Scale::share)]
    scale: Scale,
    /// How much to say about queues, in FastClick; here `castanet explain` does.
    #[arg(keyword, default = 1)]
    #[expect(dead_code, reason = "for configurations that say so")]
    verbose: u32,
}

/// How workers are divided among devices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(non_camel_case_types, reason = "the manual shows the name as users write it")]
pub(crate) enum Scale {
    /// A share of them each.
    share,
    /// All of them each.
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

/// A number that is -1 where nothing is said.
pub(super) fn given(number: i32) -> Option<usize> {
    usize::try_from(number).ok()
}

impl RxPlacementArgs {
    /// Which workers are to receive.
    pub(super) fn rx_threads(&self) -> RxThreads {
        RxThreads {
            most: given(self.maxthreads).filter(|&most| most > 0),
            offset: given(self.threadoffset),
            numa: self.numa,
            parallel: self.scale == Scale::parallel,
        }
    }

    /// The device's NUMA node.
    pub(super) fn node(&self, found: Option<usize>) -> Option<usize> {
        given(self.numa_node).or(found)
    }

    /// The queues to receive from: `first` and `count` as the user says them.
    /// Whoever says the first wants that one.
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

/// What a device offers to receive from.
#[derive(Clone, Copy)]
pub(super) enum AvailableQueues {
    /// As many queues as there are, all of which packets come to.
    All(usize),
    /// As many queues as are wanted, up to a number.
    UpTo(usize),
    /// A socket for each who wants one.
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
        let spread = <RxPlacementArgs as Args>::parse(text, &Names::default()).unwrap();
        spread.queues(first, count, of)
    }

    #[test]
    fn queues_are_as_many_as_said_or_as_fit() {
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
    fn crews_are_as_arguments_say() {
        let crew = |text: &str| {
            <RxPlacementArgs as Args>::parse(text, &Names::default()).unwrap().rx_threads()
        };
        assert_eq!(crew(""), RxThreads::default());
        let all = crew("MAXTHREADS 2, THREADOFFSET 1, NUMA false, SCALE parallel");
        let want = RxThreads { most: Some(2), offset: Some(1), numa: false, parallel: true };
        assert_eq!(all, want);
        let wrong =
            <RxPlacementArgs as Args>::parse("SCALE both", &Names::default()).err().unwrap();
        assert_eq!(wrong[0].message(), "SCALE: `both` is not share or parallel");
    }
}
