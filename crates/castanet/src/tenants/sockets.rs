//! Control sockets of tenants, and the quotas of their clients.

use super::configurations::TenantConfigurations;
use super::process_calls::ProcessCalls;
use crate::load::io_error_text;
use castanet_element::control::ControlWaker;
use castanet_element::error::ArgError;
use castanet_element::time::Time;
use castanet_io::control::{DeferredAnswer, InstanceRequest, InstanceSocket};
use castanet_kit::rate::TokenBucket;
use castanet_lang::{Diagnostic, Diagnostics};
use castanet_tenants::{ControlQuotas, Entry, Tenant, TenantControl};
use nix::errno::Errno;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Tokens of one installation, so that a rate of installations in a minute is one of tokens in a second.
const INSTALL: u64 = 60;

/// The control sockets of all tenants.
#[derive(Default)]
pub(crate) struct TenantSockets {
    all: Vec<TenantSocket>,
    /// Index of the socket whose client is next.
    next: usize,
}

/// The control socket of one tenant.
pub(crate) struct TenantSocket {
    /// The tenant.
    pub(crate) tenant: String,
    pub(crate) socket: InstanceSocket,
    path: PathBuf,
    /// The group whose members may connect, as the system file names it.
    group: Option<String>,
    quotas: QuotaBuckets,
    /// Answers that wait until the new configuration runs.
    pub(crate) deferred: Vec<DeferredAnswer>,
    /// Commands that the tenant's process answers.
    pub(crate) calls: ProcessCalls,
}

/// Sockets that are open for a system file, before it runs; dropping them closes those that are new.
#[derive(Default)]
pub(crate) struct PreparedSockets {
    /// The tenants whose sockets stay open, and their quotas.
    kept: Vec<(String, ControlQuotas)>,
    new: Vec<TenantSocket>,
}

/// The quotas of a tenant's clients, and how much of them is left.
struct QuotaBuckets {
    most: ControlQuotas,
    commands: TokenBucket,
    installs: TokenBucket,
}

impl QuotaBuckets {
    fn new(most: ControlQuotas, now: Time) -> QuotaBuckets {
        let (commands, installs) =
            (u64::from(most.commands_per_second), u64::from(most.installs_per_minute));
        QuotaBuckets {
            most,
            commands: TokenBucket::new(commands, commands, now.nanos()),
            installs: TokenBucket::new(installs, installs * INSTALL, now.nanos()),
        }
    }
}

/// The number of the group whose members may connect, if there is one. A group that does not exist is an error in
/// `found`, and the result `None`.
pub(super) fn group_of(control: &TenantControl, found: &mut Diagnostics) -> Option<Option<u32>> {
    let Some(group) = &control.group else { return Some(None) };
    let number = crate::instance::group(&group.value);
    let help = "`group` is the name or the number of a group of this machine";
    let wrong = |error: &String| Diagnostic::error(group.span, error.clone()).with_help(help);
    number.inspect_err(|error| found.push(wrong(error))).ok().map(Some)
}

/// The error about a control socket that cannot be made.
pub(super) fn unusable(
    tenant: &Tenant,
    control: &TenantControl,
    path: &Path,
    error: &io::Error,
) -> Diagnostic {
    let (why, help) = match error.kind() {
        ErrorKind::AddrInUse => (
            "another program listens there, or a file has this name".to_owned(),
            "name another path, or remove that file",
        ),
        ErrorKind::NotFound => (io_error_text(error), "make its folder, or name one that is there"),
        ErrorKind::InvalidInput => (io_error_text(error), "name a shorter path"),
        _ if error.raw_os_error() == Some(Errno::EPERM as i32) && control.group.is_some() => {
            (io_error_text(error), "name a group to which the coordinator's user may give a file")
        }
        ErrorKind::PermissionDenied => {
            (io_error_text(error), "name a folder that the coordinator's user may write")
        }
        _ => (io_error_text(error), "name another path"),
    };
    let message =
        format!("the control socket of tenant `{}`: {}: {why}", tenant.name, path.display());
    Diagnostic::error(control.socket.span, message).with_help(help)
}

/// Whether two paths lead to one file that is there.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Paths for a new socket whose own path is that of one that is still open: as long as it, in the same folder.
fn interim(path: &Path) -> impl Iterator<Item = PathBuf> {
    let name = path.as_os_str().as_bytes();
    let others = (b'0'..=b'9').chain(b'a'..=b'z').chain(*b"~-_");
    others.filter(|it| name.last() != Some(it)).map(|last| {
        let mut name = name.to_vec();
        name.pop();
        name.push(last);
        PathBuf::from(OsString::from_vec(name))
    })
}

/// Opens a socket at the first of these paths that no file has, for members of a group if there is one.
fn open_at(
    paths: impl IntoIterator<Item = PathBuf>,
    members: Option<u32>,
    waker: &ControlWaker,
) -> io::Result<InstanceSocket> {
    let mut opened = Err(ErrorKind::AddrInUse.into());
    for path in paths {
        opened = InstanceSocket::open(path, members, waker.clone());
        if !matches!(&opened, Err(error) if error.kind() == ErrorKind::AddrInUse) {
            break;
        }
    }
    opened
}

impl TenantSockets {
    /// Opens the sockets that the system file names and that are not open; none of those that are open changes before
    /// [`TenantSockets::exchange`]. Sockets that cannot be opened are errors in `found`. `waker` is called for each
    /// command of a client.
    pub(crate) fn prepare(
        &self,
        configurations: &TenantConfigurations,
        waker: &ControlWaker,
        now: Time,
        found: &mut Diagnostics,
    ) -> PreparedSockets {
        let mut prepared = PreparedSockets::default();
        let tenants = configurations.system().tenants.iter();
        let wanted = tenants.filter_map(|it| Some((it, it.control.as_ref()?)));
        let (kept, new): (Vec<_>, Vec<_>) = wanted.partition(|(tenant, control)| {
            let path = configurations.path(&control.value.socket.value);
            let group = control.value.group.as_ref().map(|it| &it.value);
            let mut open = self.all.iter().filter(|it| it.tenant == tenant.name);
            open.any(|it| (&it.path, it.group.as_ref()) == (&path, group))
        });
        let quotas = |(tenant, control): (&Tenant, &Entry<TenantControl>)| {
            (tenant.name.clone(), control.value.quotas)
        };
        prepared.kept = kept.into_iter().map(quotas).collect();
        let ends = |it: &&TenantSocket| !prepared.kept.iter().any(|(name, _)| *name == it.tenant);
        let ending: Vec<_> = self.all.iter().filter(ends).map(|it| &it.path).collect();
        for (tenant, control) in new {
            let path = configurations.path(&control.value.socket.value);
            let group = control.value.group.as_ref().map(|it| it.value.clone());
            let Some(members) = group_of(&control.value, found) else { continue };
            let is_taken = ending.iter().any(|&it| *it == path || is_same_file(it, &path));
            let opened = match is_taken {
                true => open_at(interim(&path), members, waker),
                false => open_at([path.clone()], members, waker),
            };
            match opened {
                Ok(socket) => {
                    let quotas = QuotaBuckets::new(control.value.quotas, now);
                    prepared.new.push(TenantSocket {
                        tenant: tenant.name.clone(),
                        socket,
                        path,
                        group,
                        quotas,
                        deferred: Vec::new(),
                        calls: ProcessCalls::default(),
                    });
                }
                Err(error) => found.push(unusable(tenant, &control.value, &path, &error)),
            }
        }
        prepared
    }

    /// Goes on with sockets that were prepared, and closes all that were not wanted any more.
    ///
    /// # Errors
    /// Sockets that are not found by their names, each with the reason.
    pub(crate) fn exchange(&mut self, prepared: PreparedSockets, now: Time) -> Result<(), String> {
        let PreparedSockets { kept, new } = prepared;
        self.all.retain_mut(|it| {
            let quotas = kept.iter().find(|(tenant, _)| *tenant == it.tenant).map(|(_, it)| *it);
            let changed = quotas.filter(|quotas| *quotas != it.quotas.most);
            changed.iter().for_each(|&quotas| it.quotas = QuotaBuckets::new(quotas, now));
            quotas.is_some()
        });
        let mut errors = Vec::new();
        for mut it in new {
            if let Err(error) = it.socket.rename(it.path.clone()) {
                let (path, why) = (it.path.display(), io_error_text(&error));
                errors.push(format!("the control socket of tenant {}: {path}: {why}", it.tenant));
            }
            self.all.push(it);
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }

    /// The next command of a client of some tenant, with the index of the socket. Tenants take turns. A command
    /// beyond the tenant's quota waits; `is_waiting` is set then.
    pub(crate) fn next_command(
        &mut self,
        now: Time,
        is_waiting: &mut bool,
    ) -> Option<(usize, InstanceRequest)> {
        for _ in 0..self.all.len() {
            let at = self.next % self.all.len();
            self.next = at + 1;
            let it = &mut self.all[at];
            it.quotas.commands.fill(now.nanos());
            if !it.quotas.commands.contains(1) {
                *is_waiting = true;
                continue;
            }
            if let Some(request) = it.socket.next() {
                it.quotas.commands.remove(1);
                return Some((at, request));
            }
        }
        None
    }

    /// The socket of an index.
    pub(crate) fn at(&mut self, index: usize) -> &mut TenantSocket {
        &mut self.all[index]
    }

    /// All sockets.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut TenantSocket> {
        self.all.iter_mut()
    }

    /// The path of a tenant's socket.
    pub(crate) fn path_of(&self, tenant: &str) -> Option<String> {
        self.all.iter().find(|it| it.tenant == tenant).map(|it| it.path.display().to_string())
    }
}

impl TenantSocket {
    /// As many elements as a configuration may have.
    pub(crate) fn most_elements(&self) -> u32 {
        self.quotas.most.elements
    }

    /// Takes the right to install a text of this length.
    ///
    /// # Errors
    /// The quota of the tenant does not allow it.
    pub(crate) fn take_install(&mut self, length: usize, now: Time) -> Result<(), ArgError> {
        if length as u64 > self.quotas.most.text {
            let most = self.quotas.most.text;
            let message = format!("the configuration has {length} bytes, of {most} allowed");
            return Err(ArgError::new(message));
        }
        self.quotas.installs.fill(now.nanos());
        if !self.quotas.installs.contains(INSTALL) {
            let rate = self.quotas.most.installs_per_minute;
            let lacking = INSTALL - self.quotas.installs.tokens();
            let wait = lacking.div_ceil(u64::from(rate));
            let message =
                format!("{rate} installations in a minute are allowed; the next one in {wait} s");
            return Err(ArgError::new(message));
        }
        self.quotas.installs.remove(INSTALL);
        Ok(())
    }
}
