//! The protections of a tenant's process, by the names that system files and messages use.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A protection around a tenant's process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// A user namespace: no capability over anything of the host.
    UserNamespace,
    /// A network namespace without interfaces.
    NetworkNamespace,
    /// A mount namespace with an empty root.
    MountNamespace,
    /// A process namespace, in which it is alone.
    PidNamespace,
    /// A namespace for System V and POSIX message queues.
    IpcNamespace,
    /// A namespace for the names of the host.
    UtsNamespace,
    /// Landlock: no file can be opened by a path.
    Landlock,
    /// seccomp: only system calls on a list.
    Seccomp,
    /// A control group that limits its memory.
    MemoryCgroup,
    /// A control group that limits its processor time.
    CpuCgroup,
}

impl Protection {
    /// All protections.
    pub const ALL: [Protection; 10] = [
        Protection::UserNamespace,
        Protection::NetworkNamespace,
        Protection::MountNamespace,
        Protection::PidNamespace,
        Protection::IpcNamespace,
        Protection::UtsNamespace,
        Protection::Landlock,
        Protection::Seccomp,
        Protection::MemoryCgroup,
        Protection::CpuCgroup,
    ];

    /// Its name in system files.
    pub fn name(self) -> &'static str {
        match self {
            Protection::UserNamespace => "user-namespace",
            Protection::NetworkNamespace => "network-namespace",
            Protection::MountNamespace => "mount-namespace",
            Protection::PidNamespace => "pid-namespace",
            Protection::IpcNamespace => "ipc-namespace",
            Protection::UtsNamespace => "uts-namespace",
            Protection::Landlock => "landlock",
            Protection::Seccomp => "seccomp",
            Protection::MemoryCgroup => "memory-cgroup",
            Protection::CpuCgroup => "cpu-cgroup",
        }
    }
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protection {
    type Err = ();

    fn from_str(text: &str) -> Result<Protection, ()> {
        Protection::ALL.into_iter().find(|it| it.name() == text).ok_or(())
    }
}
