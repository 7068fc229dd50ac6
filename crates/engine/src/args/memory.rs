//! What arguments ask for, against the memory that there is.

use super::ArgError;

/// Checks that `count` things of `size` bytes each, called `what` in the plural, take no more than
/// half of the memory that is free. What is allocated by a number that a user gives asks here
/// first: where memory ends, the process does.
pub fn affordable(count: u64, size: usize, what: &str) -> Result<(), ArgError> {
    // Where the system does not say, a gibibyte is little enough.
    let free = available(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default());
    within(count, size, what, free.unwrap_or(2 << 30))
}

fn within(count: u64, size: usize, what: &str, free: u64) -> Result<(), ArgError> {
    let (size, half) = (size.max(1) as u64, free / 2);
    if count.checked_mul(size).is_some_and(|bytes| bytes <= half) {
        return Ok(());
    }
    let needed = u128::from(count) * u128::from(size) / (1 << 20);
    let message = format!("{count} {what} take {needed} MiB; {} MiB are free", free >> 20);
    let help = format!("up to {}, half of the free memory", half / size);
    Err(ArgError::new(message).help(help).click("out of memory"))
}

/// How many bytes `/proc/meminfo` says can be had without swapping.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_free_memory_is_to_be_had() {
        let free = available("MemTotal: 9 kB\nMemAvailable:    2048 kB\n").unwrap();
        assert_eq!(free, 2 << 20);
        assert!(within(1 << 17, 8, "counts", free).is_ok());
        let error = within((1 << 17) + 1, 8, "counts", free).unwrap_err().to_string();
        assert_eq!(
            error,
            "131073 counts take 1 MiB; 2 MiB are free; up to 131072, half of the free memory"
        );
        assert!(within(u64::MAX, 8, "counts", free).is_err());
        assert!(affordable(u64::from(u32::MAX) << 10, 8, "counts").is_err());
    }
}
