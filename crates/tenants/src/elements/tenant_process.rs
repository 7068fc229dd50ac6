//! `TenantProcess`: runs a tenant's graph in a process of its own.

use crate::sandbox::{Launch, Limits, ProcessDescription, ProcessStatus, Protection, Supervisor};
use castanet_element::account::CpuPart;
use castanet_element::args::Words;
use castanet_element::control::ControlWaker;
use castanet_element::handler::Metric;
use castanet_element::prelude::*;
use std::time::Duration;

const RUNNING: Metric = Metric::gauge(
    "tenant_process_up",
    "Whether the process of a tenant runs and takes packets: 1 or 0.",
);
const STARTS: Metric =
    Metric::counter("tenant_process_starts", "Starts of the process of a tenant.");

/// Runs a tenant's graph in a confined process of its own, and restarts it when it ends.
///
/// `castanet tenants` puts this element in the place of the graph of a tenant with `isolation =
/// "process"`. The process is another one of this program. It has slot channels to this one and
/// nothing else: `ToSlots` and `FromSlots` with PASSED true and the names TENANT/CHANNEL are this side
/// of them. Its log comes out as lines of this element. Clients of a running system call handlers of its
/// elements as `TENANT/ELEMENT.handler`.
///
/// A process that ends, or makes no progress for PATIENCE, is started again: after 100 ms, and after
/// twice as long each time, up to 30 s; once it has run for a minute, this begins anew. The process ends with
/// this element and with this program.
///
/// ```text
/// TenantProcess(red, CHANNELS eth1, GRAPH "
///     FromSlots(eth1, CLIENT true, PASSED true) -> EtherMirror
///     -> ToSlots(eth1, CLIENT true, PASSED true)", MEMORY 67108864);
/// FromDevice(eth0) -> ToSlots(red/eth1, PASSED true);
/// FromSlots(red/eth1, PASSED true) -> ToDevice(eth0);
/// ```
#[derive(Clone, PartialEq, Element)]
#[element(args = TenantProcessArgs)]
pub struct TenantProcess {
    /// The tenant's name.
    #[read]
    tenant: String,
    /// Its graph.
    #[read]
    graph: String,
    channels: Vec<String>,
    limits: Limits,
    require: Vec<Protection>,
    patience: Duration,
}

/// The arguments of `TenantProcess`.
#[derive(Args)]
pub struct TenantProcessArgs {
    /// The tenant's name.
    #[arg]
    tenant: String,
    /// The graph that the process runs.
    #[arg(keyword)]
    graph: String,
    /// The names of its slot channels in that graph.
    #[arg(keyword)]
    channels: Option<Words>,
    /// Bytes of memory that the process may use.
    #[arg(keyword)]
    memory: Option<u64>,
    /// The part of one processor that it never exceeds.
    #[arg(keyword)]
    limit: Option<CpuPart>,
    /// The part of one processor that it has beside others.
    #[arg(keyword, default = CpuPart(0.0))]
    guarantee: CpuPart,
    /// Protections without which it must not run, such as `landlock` and `seccomp`.
    #[arg(keyword)]
    require: Option<Words>,
    /// The longest time in which its workers make no turn.
    #[arg(keyword, default = Duration::from_secs(10))]
    patience: Duration,
}

/// The supervisor of the process.
#[derive(Default, Local)]
#[local(methods)]
pub struct TenantProcessState {
    waker: Option<ControlWaker>,
    supervisor: Option<Supervisor>,
}

#[handlers]
impl TenantProcessState {
    /// `starting`; `running`; `waiting` between an end and the next start; or `refused` if it lacks a
    /// protection that it requires.
    #[read]
    fn state(&self) -> String {
        self.status().state.to_string()
    }

    /// Whether it runs: 1 or 0.
    #[read]
    #[metric(RUNNING)]
    fn running(&self) -> u64 {
        u64::from(self.status().state == crate::sandbox::ProcessState::Running)
    }

    /// Number of the process; empty while there is none.
    #[read]
    fn pid(&self) -> String {
        self.status().pid.map(|pid| pid.to_string()).unwrap_or_default()
    }

    /// Number of starts.
    #[read]
    #[metric(STARTS)]
    fn starts(&self) -> u64 {
        self.status().starts
    }

    /// Number of starts after the first.
    #[read]
    fn restarts(&self) -> u64 {
        self.status().starts.saturating_sub(1)
    }

    /// The reason of its last end; empty if it has never ended.
    #[read]
    fn last_end(&self) -> String {
        self.status().last_end
    }

    /// The confinement of the process, in a sentence.
    #[read]
    fn confinement(&self) -> String {
        self.status().confinement
    }

    /// Protections that the kernel does not give, a line each, with the reason.
    #[read]
    fn lacking(&self) -> String {
        let lines = self.status().lacking.into_iter().map(|(it, why)| format!("{it} {why}\n"));
        lines.collect()
    }
}

impl TenantProcessState {
    fn status(&self) -> ProcessStatus {
        self.supervisor.as_ref().map(Supervisor::status).unwrap_or_default()
    }
}

impl Build for TenantProcess {
    type Args = TenantProcessArgs;

    fn build(args: TenantProcessArgs, _: &Setup) -> Result<Self, ArgError> {
        let words = |words: Option<Words>| words.map(|it| it.words).unwrap_or_default();
        let require = words(args.require).into_iter().map(|name| {
            name.parse().map_err(|()| {
                let help = format!("they are {}", Protection::ALL.map(Protection::name).join(", "));
                ArgError::new(format!("REQUIRE: there is no protection `{name}`")).help(help)
            })
        });
        Ok(TenantProcess {
            tenant: args.tenant,
            graph: args.graph,
            channels: words(args.channels),
            limits: Limits {
                memory: args.memory,
                cpu: args.limit.map(|part| part.0),
                cpu_guarantee: args.guarantee.0,
            },
            require: require.collect::<Result<_, _>>()?,
            patience: args.patience.max(Duration::from_millis(100)),
        })
    }
}

impl Control for TenantProcess {
    type Local = TenantProcessState;

    fn can_take_state(&self, before: &TenantProcess) -> bool {
        self == before
    }

    fn init(&self, local: &mut TenantProcessState, waker: ControlWaker) -> Result<(), ArgError> {
        local.waker = Some(waker);
        Ok(())
    }

    fn step(
        &self,
        local: &mut TenantProcessState,
        control: &mut dyn ControlContext,
    ) -> ProgramWait {
        if let (None, Some(waker)) = (&local.supervisor, local.waker.clone()) {
            match Supervisor::start(self.launch(), self.patience, waker) {
                Ok(supervisor) => local.supervisor = Some(supervisor),
                Err(error) => {
                    control.chatter(&format!("{}: no process: {error}\n", self.tenant));
                    return ProgramWait::Ended;
                }
            }
        }
        for message in local.supervisor.iter().flat_map(Supervisor::take_messages) {
            control.chatter(&format!("{}: {message}\n", self.tenant));
        }
        ProgramWait::Notified
    }
}

impl TenantProcess {
    fn launch(&self) -> Launch {
        Launch {
            description: ProcessDescription {
                tenant: self.tenant.clone(),
                graph: self.graph.clone(),
                channels: self.channels.clone(),
                memory: self.limits.memory,
                has_memory_cgroup: false,
                require: self.require.clone(),
                interval: (self.patience / 4).as_millis() as u64,
                probe: false,
            },
            limits: self.limits,
        }
    }
}
