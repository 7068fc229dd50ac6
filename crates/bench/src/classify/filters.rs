//! The classifiers against sets of patterns, beside the same as tests.

use super::sets::{Kind, RuleFields, Set, prefix};
use super::{ASKED, Plan, Record};
use crate::example::{CostMeasurement, cost_of};
use castanet_element::class::Library;
use castanet_kit::classify::{Pattern, Program, Rule};
use castanet_packet::Packet;
use castanet_wire::sketch;
use std::time::{Duration, Instant};

/// A set of patterns, and the class that has them.
pub(super) struct Filter {
    set: Set,
    class: &'static str,
}

/// Outputs of an `IPClassifier`, whose patterns are alternatives.
const WAYS: usize = 16;
/// Outputs of a `Classifier`, at most.
const OUTPUTS: usize = 200;

/// All sets with at most `most` patterns.
pub(super) fn filters(most: usize) -> Vec<Filter> {
    let tuples = Kind::Tuples { stateful: false };
    let mut filters = Vec::new();
    let mut add = |case, class, kind, counts: &[usize]| {
        let counts = counts.iter().filter(|&&count| count <= most);
        filters.extend(counts.map(|&count| Filter { set: Set { case, count, kind }, class }));
    };
    let sizes = [10, 100, 1000, 10_000, 100_000];
    add("ipfilter", "IPFilter", tuples, &sizes);
    add("ipfilter-list", "IPFilter", Kind::AccessList, &sizes);
    add("ipclassifier", "IPClassifier", Kind::AccessList, &sizes[1..]);
    add("classifier", "Classifier", tuples, &[10, 100, OUTPUTS]);
    filters
}

impl Filter {
    pub(super) fn case(&self) -> &'static str {
        self.set.case
    }

    pub(super) fn count(&self) -> usize {
        self.set.count
    }

    /// A pattern of the set, in the language of the class.
    fn pattern(&self, n: usize) -> String {
        let RuleFields { src, dst, lengths, port, random } = self.set.about(n);
        if self.class == "Classifier" {
            return format!("12/0800 23/11 26/{src:08x} 30/{dst:08x} 36/{port:04x}");
        }
        let ends =
            format!("src net {} and dst net {}", prefix(src, lengths.0), prefix(dst, lengths.1));
        let ports = match (self.set.kind, random >> 40 & 7) {
            (Kind::AccessList, 4) => "udp dst port >= 1024".to_owned(),
            (Kind::AccessList, 5) => {
                format!("udp dst port >= {} and udp dst port <= {}", port & !15, port | 15)
            }
            (Kind::AccessList, 6..) => "udp".to_owned(),
            _ => format!("udp dst port {port}"),
        };
        format!("{ends} and {ports}")
    }

    /// The arguments of the element.
    fn arguments(&self) -> Vec<String> {
        let patterns = (0..self.set.count).map(|n| self.pattern(n));
        match self.class {
            "IPFilter" => patterns.map(|it| format!("allow {it}")).collect(),
            "IPClassifier" => {
                let mut ways = vec![Vec::new(); WAYS.min(self.set.count)];
                let count = ways.len();
                for (n, pattern) in patterns.enumerate() {
                    ways[n % count].push(format!("({pattern})"));
                }
                ways.into_iter().map(|way| way.join(" or ")).collect()
            }
            _ => patterns.collect(),
        }
    }

    fn rules(&self, arguments: &[String]) -> Result<Vec<Rule>, String> {
        let rule = |(n, text): (usize, &String)| {
            let pattern = match self.class {
                "IPFilter" => return Rule::filter(text, 1),
                "IPClassifier" => Pattern::ip(text)?,
                _ => Pattern::bytes(text)?,
            };
            Ok(Rule::new(pattern, u8::try_from(n).ok()))
        };
        let rules: Result<Vec<Rule>, _> = arguments.iter().enumerate().map(rule).collect();
        rules.map_err(|error| error.to_string())
    }

    fn packet(&self, flow: usize) -> String {
        let packet = self.set.packet(flow);
        match self.class {
            "Classifier" => format!("eth 0:0:0:0:0:1 > 0:0:0:0:0:2 {packet}"),
            _ => packet,
        }
    }

    /// Measures the element, and the same patterns as tests.
    pub(super) fn measure(&self, plan: &Plan, library: &Library) -> Result<Record, String> {
        let arguments = self.arguments();
        let started = Instant::now();
        let rules = self.rules(&arguments)?;
        let program = Program::compile(&rules);
        let load_ms = started.elapsed().as_secs_f64() * 1e3;
        let packets: Vec<String> = (0..plan.flows).map(|flow| self.packet(flow)).collect();
        let (hits, reference_ns) = self.compared(&program, &rules, &packets)?;
        let (masks, matcher) = (program.masks(), program.matcher());
        drop((program, rules));
        let CostMeasurement { cycles, ns, undisturbed, .. } =
            self.element(&arguments, &packets, plan.time, library)?;
        Ok(Record {
            case: self.set.case,
            rules: self.set.count,
            flows: plan.flows,
            masks,
            cycles,
            ns,
            undisturbed,
            hits,
            load_ms,
            matcher: Some(matcher),
            reference: "tests",
            reference_ns,
            ..Record::default()
        })
    }

    /// Asks the element's program and its tests about the same packets; how many of these go
    /// to some output, and the nanoseconds of the tests for one.
    fn compared(
        &self,
        program: &Program,
        rules: &[Rule],
        packets: &[String],
    ) -> Result<(f64, f64), String> {
        let tests = Program::tests_only(rules);
        let count = (ASKED / rules.len().max(1)).clamp(16, 2000).min(packets.len());
        let (mut hits, mut spent) = (0, Duration::ZERO);
        for text in packets.iter().step_by((packets.len() / count).max(1)).take(count) {
            let packet = Packet::from_bytes(&sketch::build(text)?.bytes);
            let bytes = packet.bytes();
            let run = |program: &Program| match self.class {
                "Classifier" => program.run_bytes(bytes),
                _ => program.run_ip(bytes),
            };
            let started = Instant::now();
            let by_tests = run(&tests);
            spent += started.elapsed();
            let outcome = run(program);
            if outcome != by_tests {
                return Err(format!("of {text}, the element says {outcome:?}, tests {by_tests:?}"));
            }
            hits += usize::from(outcome.is_some());
        }
        Ok((hits as f64 / count as f64, spent.as_nanos() as f64 / count as f64))
    }

    /// The whole element, in bursts of 32.
    fn element(
        &self,
        arguments: &[String],
        packets: &[String],
        time: Duration,
        library: &Library,
    ) -> Result<CostMeasurement, String> {
        let outputs = if self.class == "IPFilter" { 1 } else { arguments.len() };
        let mut example = format!("in -> c :: {}({})\n", self.class, arguments.join(", "));
        (0..outputs).for_each(|output| example += &format!("c[{output}] -> out\n"));
        packets.iter().for_each(|packet| example += &format!("> in {packet}\n"));
        let class = library.get(self.class).ok_or("no such class")?;
        cost_of(class, &example, library, time)
    }
}

#[cfg(test)]
mod tests {
    use super::{Program, filters};

    #[test]
    fn elements_classify_as_their_tests() {
        for filter in filters(200) {
            let rules = filter.rules(&filter.arguments()).unwrap();
            let program = Program::compile(&rules);
            let packets: Vec<String> = (0..500).map(|flow| filter.packet(flow * 7)).collect();
            let (hits, _) = filter.compared(&program, &rules, &packets).unwrap();
            assert!(hits > 0.9, "{} {}: {hits}", filter.case(), filter.count());
        }
    }
}
