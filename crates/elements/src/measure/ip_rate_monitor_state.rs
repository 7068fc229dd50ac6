//! State of `IPRateMonitor`: the rates, and the handlers about them.

use castanet_element::prelude::*;
use castanet_kit::ip_rates::{self, EPOCHS, RateLimits, RateTree, UNLIMITED};

/// The bound in bytes for an argument in kilobytes.
pub(super) fn memory_bound(kilobytes: u32) -> usize {
    match kilobytes {
        0 => UNLIMITED,
        it => (it.max(100) as usize * 1024).min(UNLIMITED - 1),
    }
}

/// The rates. All workers share them.
#[derive(Default, Local)]
#[local(methods)]
pub struct IPRateMonitorState {
    pub(super) tree: RateTree,
    pub(super) limits: Option<RateLimits>,
    /// The epoch of the last burst, and that of the last reset.
    pub(super) epoch: u64,
    pub(super) reset_epoch: u64,
}

#[handlers]
impl IPRateMonitorState {
    /// Epochs of 8 ms since the last reset; then a line for each part of an address with its
    /// forward and its reverse rate.
    #[read]
    fn look(&self, ask: &ReadRequest) -> String {
        let epoch = ip_rates::epoch(ask.now.nanos());
        let since = epoch.saturating_sub(self.reset_epoch);
        format!("{since}\n{}", self.tree.listing(epoch))
    }
    /// Events a second, of those that change the rates, from which on the next byte has rates.
    #[read]
    fn thresh(&self) -> u64 {
        self.limits.map_or(0, |limits| limits.threshold)
    }
    /// Memory in use, in bytes.
    #[read]
    fn mem(&self) -> u64 {
        self.tree.bytes() as u64
    }
    /// Most memory in bytes; 0 if MEMORY is 0.
    #[read]
    fn memmax(&self) -> u64 {
        let memory = self.limits.map_or(UNLIMITED, |limits| limits.memory);
        if memory == UNLIMITED { 0 } else { memory as u64 }
    }
    /// Sets MEMORY, and removes rates if they take more.
    #[write(memmax)]
    fn set_memmax(&mut self, text: &str) -> Result<(), ArgError> {
        let number = u32::from_arg(text.trim(), &Names::default());
        let memory = memory_bound(number.map_err(|e| e.reworded("not an integer"))?);
        if let Some(limits) = &mut self.limits {
            limits.memory = memory;
            self.tree.shrink(limits, self.epoch, || 0);
        }
        Ok(())
    }
    /// Removes all rates.
    #[write]
    fn reset(&mut self, _: &str) -> Result<(), ArgError> {
        self.tree.clear();
        self.reset_epoch = self.epoch;
        Ok(())
    }
    /// `ADDRESS, LEVEL, SECONDS`: for so long there are no rates of more than LEVEL + 1 bytes of
    /// addresses that begin like this one.
    #[write]
    fn anno_level(&mut self, text: &str) -> Result<(), ArgError> {
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let [address, level, seconds] = words[..] else {
            return Err(ArgError::new("expecting 3 arguments"));
        };
        let none = Names::default();
        let address = Ipv4Addr::from_arg(address, &none);
        let address = address.map_err(|e| e.reworded("not an IP address"))?;
        let level = u32::from_arg(level, &none).ok().filter(|level| *level < 4);
        let level = level.ok_or_else(|| {
            ArgError::new("2nd argument specifies a level, between 0 and 3, to annotate")
        })?;
        let seconds = u32::from_arg(seconds, &none).ok().filter(|seconds| *seconds > 0);
        let seconds = seconds.ok_or_else(|| {
            ArgError::new("3rd argument specifies when this rule expires, must be > 0")
        })?;
        self.tree.close(address, level as usize, self.epoch + u64::from(seconds) * EPOCHS);
        Ok(())
    }
}
