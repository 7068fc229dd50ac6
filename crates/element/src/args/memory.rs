//! Checks sizes that arguments ask for against the free memory.

use super::ArgError;

/// Checks that `count` things of `size` bytes each, called `what` in the plural, take no more than
/// half of the memory that is free. Elements that allocate by a number of the user check it so, for
/// the process ends where memory does.
pub fn affordable(count: u64, size: usize, what: &str) -> Result<(), ArgError> {
    within(count, size, what, crate::memory::free())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_free_memory_is_to_be_had() {
        let free = 2 << 20;
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
