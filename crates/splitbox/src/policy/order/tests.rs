//! Orders have the same results, and never more expected matches.

use super::*;
use crate::policy::drop_action;
use proptest::prelude::*;

/// Bits of the header strings of these tests: matches test the first 16, actions change the others.
const WIDTH: usize = 48;

fn condition() -> impl Strategy<Value = Ternary> {
    let field = (0..4_usize, 1..5_usize, 0..4_u128);
    prop::collection::vec(field, 0..4).prop_map(|fields| {
        let with =
            |all: Ternary, (at, width, value): (usize, usize, u128)| all.with(4 * at, width, value);
        fields.into_iter().fold(Ternary::ANY, with)
    })
}

/// Stages of policies that set one of few values, drop, or leave packets alone, and go to the next stage
/// or the end.
fn functions() -> impl Strategy<Value = CompiledPolicy> {
    let entry = (condition(), 0..5_u8, any::<bool>());
    let stage = prop::collection::vec(entry, 1..30);
    prop::collection::vec(stage, 1..4).prop_map(|stages| {
        let count: usize = stages.iter().map(Vec::len).sum();
        let (mut policies, mut nodes, mut end) = (Vec::new(), Vec::new(), 0);
        for (number, stage) in stages.into_iter().enumerate() {
            end += stage.len();
            for (condition, value, is_exit) in stage {
                let action = match value {
                    0 => Ternary::ANY,
                    // A later drop would overlap.
                    1 if number == 0 => drop_action(WIDTH),
                    value => Ternary::ANY.with(16 + 8 * number, 8, value.into()),
                };
                let matched = if value == 1 && number == 0 || is_exit { count } else { end };
                let otherwise = nodes.len() + 1;
                nodes.push(Node::Match { policy: policies.len(), matched, otherwise });
                policies.push(Policy { condition, action });
            }
        }
        nodes.push(Node::Leaf);
        let ranges = (0..policies.len()).map(|at| at..at + 1).collect();
        let function = NetworkFunction::new(policies, nodes).expect("stages do not overlap");
        CompiledPolicy { function, header_bits: WIDTH, ranges }
    })
}

fn string() -> impl Strategy<Value = Bits> {
    // Bit 40 tells packets from dropped ones.
    any::<u16>().prop_map(|it| Ternary::ANY.with(0, 16, it.into()).with(40, 1, 1).value())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn orders_have_equal_results_and_never_more_matches(
        policy in functions(),
        samples in prop::collection::vec(string(), 0..40),
        others in prop::collection::vec(string(), 200),
        has_branches: bool,
    ) {
        let shape = if has_branches { TreeShape::Branches } else { TreeShape::Lists };
        let profile: Profile = samples.iter().copied().collect();
        let (new, report) = order(&policy, &profile, shape);
        for &it in samples.iter().chain(&others) {
            prop_assert_eq!(new.function.evaluate(it), policy.function.evaluate(it));
        }
        prop_assert!(report.after <= report.before, "{:?}", report);
        prop_assert_eq!(report.policies_after, new.function.policies().len());
        prop_assert_eq!(new.ranges.len(), report.policies_after);
        if !has_branches {
            prop_assert!(report.policies_after <= report.policies_before);
            for (it, range) in new.function.policies().iter().zip(&new.ranges) {
                prop_assert_eq!(it, &policy.function.policies()[range.start]);
            }
        }
    }
}

fn list(policies: &[(Ternary, Ternary)]) -> CompiledPolicy {
    let policies = policies.iter().map(|&(condition, action)| Policy { condition, action });
    let function = NetworkFunction::first_match(policies.collect());
    let ranges = (0..function.policies().len()).map(|at| at..at).collect();
    CompiledPolicy { function, header_bits: WIDTH, ranges }
}

fn byte(value: u128) -> Ternary {
    Ternary::ANY.with(0, 8, value)
}

/// The order of a list after ordering, and expected matches before and after.
fn ordered(
    policies: &[(Ternary, Ternary)],
    traffic: &[u128],
    shape: TreeShape,
) -> (Vec<usize>, f64, f64) {
    let profile = traffic.iter().map(|&it| byte(it).value()).collect();
    let (new, report) = order(&list(policies), &profile, shape);
    (new.ranges.iter().map(|it| it.start).collect(), report.before, report.after)
}

#[test]
fn frequent_matches_come_first_with_those_before_them() {
    let [one, two] = [1, 2].map(|it| Ternary::ANY.with(16, 8, it));
    // 3 overlaps 1 and must stay behind it; 0 and 2 are exclusive.
    let policies = [
        (byte(0x10), one),
        (byte(0x21), one),
        (byte(0x30), two),
        (Ternary::ANY.with(0, 4, 2), two),
    ];
    let traffic = [0x22, 0x22, 0x22, 0x22, 0x30];
    let (order, before, after) = ordered(&policies, &traffic, TreeShape::Lists);
    assert_eq!(order, [1, 3, 2, 0]);
    assert_eq!((before, after), (3.8, 2.2));
    // Without traffic the order stays.
    assert_eq!(ordered(&policies, &[], TreeShape::Lists).0, [0, 1, 2, 3]);
}

#[test]
fn policies_without_effect_go() {
    let [one, two] = [1, 2].map(|it| Ternary::ANY.with(16, 8, it));
    let net = |it| Ternary::ANY.with(0, 4, it);
    let policies = [
        // The same as 2, and nothing between them says otherwise.
        (byte(0x11), one),
        (byte(0x22), two),
        (net(1), one),
        // Behind 2, which contains it.
        (byte(0x12), two),
        // Nothing follows that does more.
        (byte(0x33), Ternary::ANY),
        (byte(0x44), two),
    ];
    assert_eq!(ordered(&policies, &[], TreeShape::Lists).0, [1, 2, 5]);
    // An exception from what follows stays.
    let exception = [(byte(0x11), Ternary::ANY), (net(1), one)];
    assert_eq!(ordered(&exception, &[], TreeShape::Lists).0, [0, 1]);
    let all = [(Ternary::ANY, Ternary::ANY), (net(1), one)];
    assert_eq!(ordered(&all, &[], TreeShape::Lists).0, [0_usize; 0]);
}

#[test]
fn branches_are_made_where_they_save_matches() {
    let action = |it| Ternary::ANY.with(16, 8, it);
    let policies: Vec<_> = (0..16).map(|it| (byte(0x40 | it), action(it))).collect();
    // No packet is one of the group: the branch alone is asked.
    let (order, before, after) = ordered(&policies, &[0x91, 0x92], TreeShape::Branches);
    assert_eq!((order.len(), before, after), (17, 16.0, 1.0));
    // All packets are.
    let (order, before, after) = ordered(&policies, &[0x4f, 0x4f], TreeShape::Branches);
    assert_eq!((order.len(), order[0], before, after), (16, 15, 16.0, 1.0));
}

#[test]
fn long_lists_are_ordered_piece_by_piece() {
    let condition = |it: usize| Ternary::ANY.with(0, 13, it as u128);
    let policies: Vec<_> =
        (0..5000).map(|it| (condition(it), Ternary::ANY.with(16, 8, it as u128 % 3))).collect();
    let profile = [4999, 4999, 4100, 2047].map(|it| condition(it).value()).into_iter().collect();
    let (new, report) = order(&list(&policies), &profile, TreeShape::Lists);
    assert_eq!(report.before, (5000.0 * 2.0 + 4101.0 + 2048.0) / 4.0);
    assert_eq!(report.after, (4097.0 * 2.0 + 4098.0 + 1.0) / 4.0);
    let old = list(&policies);
    for it in (0..5001).step_by(50) {
        let string = condition(it).value();
        assert_eq!(new.function.evaluate(string), old.function.evaluate(string));
    }
}
