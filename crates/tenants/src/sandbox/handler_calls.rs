//! The connections by which handlers of tenants' processes are called.

use castanet_io::control::remote::RemoteCalls;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

/// By tenant: the connection to the process that was started last.
type Connections = HashMap<String, Weak<RemoteCalls>>;

static CONNECTIONS: LazyLock<Mutex<Connections>> = LazyLock::new(Mutex::default);

fn connections() -> MutexGuard<'static, Connections> {
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has calls of a tenant's handlers go to this process from now on.
pub(super) fn register(tenant: &str, calls: &Arc<RemoteCalls>) {
    let mut all = connections();
    all.retain(|_, calls| calls.strong_count() > 0);
    all.insert(tenant.to_owned(), Arc::downgrade(calls));
}

/// The connection by which handlers of a tenant's process are called; `None` if it has no process now.
pub fn handler_calls(tenant: &str) -> Option<Arc<RemoteCalls>> {
    connections().get(tenant)?.upgrade()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_go_to_the_last_process_while_there_is_one() {
        let process = || {
            let (calls, process) = RemoteCalls::pair().unwrap();
            let calls = Arc::new(calls);
            register("a tenant of a test", &calls);
            (calls, process)
        };
        let ((first, _), (second, _)) = (process(), process());
        let found = || handler_calls("a tenant of a test");
        assert!(Arc::ptr_eq(&found().unwrap(), &second));
        drop(second);
        assert!(found().is_none());
        drop(first);
    }
}
