//! The handlers by which elements tell the state of their interface.

use super::metrics;
use crate::links::{self, LinkState};
use castanet_element::prelude::*;

/// The handlers of an element with an interface.
#[derive(Clone)]
pub(super) struct LinkHandlers {
    devname: String,
}

impl LinkHandlers {
    pub(super) fn new(devname: &str) -> LinkHandlers {
        LinkHandlers { devname: devname.into() }
    }
}

#[handlers]
impl LinkHandlers {
    /// The state of the interface: `up`, `down`, `no carrier`, or `gone` if it was removed and the
    /// element waits for an interface of its name.
    #[read]
    fn link(&self) -> String {
        links::state(&self.devname).to_string()
    }

    /// 1 if the interface is up and has a carrier, else 0.
    #[read]
    #[metric(metrics::UP)]
    fn link_up(&self) -> u64 {
        u64::from(links::state(&self.devname) == LinkState::Up)
    }
}
