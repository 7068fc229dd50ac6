//! Compiles lines of text as patterns and rules, and runs them on a packet. The
//! text precedes the first zero byte of the input, the packet follows it.
#![no_main]

use castanet_kit::classify::{Pattern, Program, Rule};
use castanet_wire::sketch;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let end = data.iter().position(|&byte| byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..end]);
    let packet = data.get(end + 1..).unwrap_or_default();
    let lines = || text.lines().take(200).zip(0u8..);
    let patterns = |read: fn(&str) -> Option<Pattern>| -> Vec<Rule> {
        lines().filter_map(|(line, n)| Some(Rule::new(read(line)?, Some(n)))).collect()
    };
    check_rules(&patterns(|line| Pattern::ip(line).ok()), |program| program.run_ip(packet));
    check_rules(&patterns(|line| Pattern::bytes(line).ok()), |program| program.run_bytes(packet));
    let rules: Vec<_> = lines().filter_map(|(line, _)| Rule::filter(line, 4).ok()).collect();
    Program::compile(&rules).run_ip(packet);
    if let Ok(built) = sketch::build(&text) {
        let printed = sketch::print(&built.bytes, built.layer);
        assert_eq!(sketch::build(&printed).map(|s| s.bytes), Ok(built.bytes));
    }
});

/// Checks that rules compiled together give the result of the first rule that
/// matches alone.
fn check_rules(rules: &[Rule], run: impl Fn(&Program) -> Option<u8>) {
    let program = Program::compile(rules);
    let mut alone = rules.iter().map(|rule| Program::compile(std::slice::from_ref(rule)));
    assert_eq!(run(&program), alone.find_map(|one| run(&one)), "{program}");
}
