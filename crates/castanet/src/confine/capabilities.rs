//! Capabilities of the process.

use super::failed;
use caps::{CapSet, Capability, CapsHashSet};

/// Keeps those of these capabilities that the process has, and drops all others for good.
pub(super) fn keep(wanted: &[&str]) -> Result<String, String> {
    let wrong = |error: caps::errors::CapsError| failed("capabilities", &error);
    let wanted: CapsHashSet = wanted.iter().filter_map(|name| name.parse().ok()).collect();
    let held = caps::read(None, CapSet::Permitted).map_err(wrong)?;
    let kept: CapsHashSet = held.intersection(&wanted).copied().collect();
    // No program is executed later, but a bug could try to.
    if held.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all().difference(&kept) {
            // The kernel may be older than the list.
            _ = caps::drop(None, CapSet::Bounding, *capability);
        }
    }
    caps::clear(None, CapSet::Ambient).map_err(wrong)?;
    caps::set(None, CapSet::Effective, &kept).map_err(wrong)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(wrong)?;
    caps::clear(None, CapSet::Inheritable).map_err(wrong)?;
    let mut names: Vec<String> = kept.iter().map(ToString::to_string).collect();
    names.sort();
    Ok(match names.is_empty() {
        true => "no capabilities".to_owned(),
        false => names.join(" "),
    })
}
