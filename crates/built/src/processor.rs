//! Whether the processor has what the program was compiled for.

/// Instruction sets, each with whether the program was compiled for it, and whether the processor has it.
#[cfg(target_arch = "x86_64")]
macro_rules! features {
    ($($name:tt)*) => {
        [$(($name, cfg!(target_feature = $name), is_x86_feature_detected!($name))),*]
    };
}

/// Why the program cannot run on this processor, if it cannot.
#[inline(never)]
pub(crate) fn reason_against() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    let features = features! {
        "adx" "aes" "avx" "avx2" "avx512bf16" "avx512bitalg" "avx512bw" "avx512cd" "avx512dq" "avx512f" "avx512ifma"
        "avx512vbmi" "avx512vbmi2" "avx512vl" "avx512vnni" "avx512vp2intersect" "avx512vpopcntdq" "bmi1" "bmi2"
        "cmpxchg16b" "f16c" "fma" "gfni" "lzcnt" "movbe" "pclmulqdq" "popcnt" "rdrand" "rdseed" "sha" "sse3" "sse4.1"
        "sse4.2" "sse4a" "ssse3" "vaes" "vpclmulqdq"
    };
    #[cfg(not(target_arch = "x86_64"))]
    let features = [];
    refusal(&features)
}

/// The message where the processor lacks what the program was compiled for.
fn refusal(features: &[(&str, bool, bool)]) -> Option<String> {
    let lacks = features.iter().filter(|(_, is_needed, is_there)| *is_needed && !is_there);
    let names: Vec<&str> = lacks.map(|(name, ..)| *name).collect();
    (!names.is_empty()).then(|| {
        format!(
            "this program was compiled for processors with {}, which this one lacks; build it on this machine, or with \
             --target-cpu x86-64",
            names.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_lacks_is_named() {
        assert_eq!(
            refusal(&[("avx", true, true), ("avx2", false, false), ("fma", false, true)]),
            None
        );
        let features = [("avx", true, true), ("avx2", true, false), ("fma", true, false)];
        let said = refusal(&features).unwrap_or_default();
        assert!(said.contains("with avx2, fma, which"), "{said}");
        assert_eq!(reason_against(), None);
    }
}
