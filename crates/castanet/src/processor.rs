//! Instruction sets that a program was compiled for, and those of the processor.

/// Calls a macro with the names of the instruction sets of x86-64 that the compiler uses where it may.
#[macro_export]
macro_rules! instruction_sets {
    ($then:ident) => {
        $then! {
            "adx" "aes" "avx" "avx2" "avx512bf16" "avx512bitalg" "avx512bw" "avx512cd" "avx512dq" "avx512f"
            "avx512fp16" "avx512ifma" "avx512vbmi" "avx512vbmi2" "avx512vl" "avx512vnni" "avx512vp2intersect"
            "avx512vpopcntdq" "avxvnni" "bmi1" "bmi2" "cmpxchg16b" "f16c" "fma" "gfni" "lzcnt" "movbe"
            "pclmulqdq" "popcnt" "rdrand" "rdseed" "sha" "sse3" "sse4.1" "sse4.2" "sse4a" "ssse3" "vaes"
            "vpclmulqdq"
        }
    };
}

/// The names of those that the processor has.
#[cfg(target_arch = "x86_64")]
fn present() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt)*) => { [$(($name, std::arch::is_x86_feature_detected!($name))),*] };
    }
    let all = instruction_sets!(detected);
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn present() -> Vec<&'static str> {
    Vec::new()
}

/// The reason why a program cannot run here that was compiled for those of these instruction sets that are marked.
// A function of its own, of a crate that is compiled for any processor: it must run where the program does not.
#[inline(never)]
pub fn reason_against(compiled: &[(&str, bool)]) -> Option<String> {
    refusal(compiled, &present())
}

fn refusal(compiled: &[(&str, bool)], present: &[&str]) -> Option<String> {
    let needed = compiled.iter().filter(|(_, is_needed)| *is_needed).map(|(name, _)| *name);
    let missing: Vec<&str> = needed.filter(|name| !present.contains(name)).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "this program was compiled for processors with {}, which this one lacks; build it on this machine, or with \
             --target-cpu generic",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_processor_lacks_is_named() {
        let compiled = [("avx", true), ("avx2", true), ("bmi1", false), ("fma", true)];
        assert_eq!(refusal(&compiled, &["avx", "avx2", "fma"]), None);
        let said = refusal(&compiled, &["avx"]).unwrap_or_default();
        assert!(said.contains("with avx2, fma, which"), "{said}");
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_all_processors_have_is_found() {
        macro_rules! compiled {
            ($($name:tt)*) => { [$(($name, cfg!(target_feature = $name))),*] };
        }
        assert_eq!(reason_against(&instruction_sets!(compiled)), None);
        assert!(reason_against(&[("none", true)]).is_some());
    }
}
