//! `Middlebox`: packets by one-line rules.

use crate::analysis::{Remark, warnings_beside, warnings_of_all};
use crate::books::Books;
use crate::burst::Pass;
use crate::connections::Connections;
use crate::exits::Exit;
use crate::file::{self, MOST_SAID};
use crate::fragments::{HeldFragment, release};
use crate::in_force::InForce;
use crate::interfaces::Interfaces;
use crate::language::{Command, Fault, Form, Sketch, command, place};
use crate::matcher::PLACES;
use crate::placement::{Forwarding, misplaced};
use crate::rule::Rule;
use crate::rules::{Other, Rules};
use crate::trial::Trial;
use castanet_engine::prelude::*;
use castanet_kit::fragment_tracker::FragmentTracker;

/// Matches, drops and rewrites IPv4 and IPv6 packets by one-line rules.
///
/// A rule says what a packet must be and what becomes of it: `tcp-dport 80 mod
/// tcp-dport 443`. All rules that are about a packet apply, in order: the last to
/// set a field wins, `accept` beats `drop`, and of a packet that is dropped nothing
/// is rewritten. All matches are about the packet as it came. What no rule is about
/// goes on as it is. `docs/middlebox.md` has the language;
/// `castanet middlebox` is a program of this element.
///
/// Packets of input n leave by output n. Where the network header is not marked, it
/// is looked for behind the Ethernet header and VLAN tags. Checksums are mended, not
/// computed: one that was wrong stays so. What `lb` chooses becomes the destination
/// annotation, or the destination of the Ethernet header.
///
/// Rules change while packets flow, by commands of the language (`command`, whose
/// answer `said` reads) or by a handler of the command's name. A rule keeps its
/// identifier and counters as long as it is there.
///
/// ```click
/// in -> m :: Middlebox(tcp-dport 80 mod tcp-dport 443, proto udp drop) -> out
/// > in  1.0.0.1:99 > 2.0.0.2:80 tcp
/// > in  1.0.0.1:99 > 2.0.0.2:53 udp
/// > in  1.0.0.1 > 2.0.0.2 icmp
/// < out 1.0.0.1:99 > 2.0.0.2:443 tcp
/// < out 1.0.0.1 > 2.0.0.2 icmp
/// = m.drops.rule 1
/// = m.packets1 1
/// ! m.command replace 1 tcp-opt-mss > 1400 mod tcp-opt-mss 1400
/// = m.said 1 id3 add tcp-opt-mss > 1400 mod tcp-opt-mss 1400
/// = m.packets1 0
/// > in  1.0.0.1:99 > 2.0.0.2:80 tcp syn tcpopt mss1460;sackok
/// < out 1.0.0.1:99 > 2.0.0.2:80 tcp syn tcpopt mss1400;sackok;eol
/// ! m.add all mod ip-ttl 9
/// ! m.delete 2
/// = m.rules add tcp-opt-mss > 1400 mod tcp-opt-mss 1400\nadd all mod ip-ttl 9
/// ! m.command test 1.0.0.1 > 2.0.0.2 udp len 60
/// = m.said in 0: 1.0.0.1 > 2.0.0.2 udp ttl 64 len 60\nrule 2 id4: add all mod ip-ttl 9\nout 0: 1.0.0.1 > 2.0.0.2 udp ttl 9 len 60
/// ```
///
/// Interfaces have names, for the fields `in` and `out` and for `enable` and
/// `disable`. With two, packets of one leave by the other.
///
/// ```click
/// a -> m :: Middlebox(in eth0 ip-ttl < 5 drop, out eth1 mod ip6-hop-limit 7, INTERFACES eth0 eth1)
/// m -> out;  b -> [1]m[1] -> back
/// > a    1::1 > 2::2 udp
/// > a    1.0.0.1 > 2.0.0.2 udp ttl 4
/// > b    1.0.0.1 > 2.0.0.2 udp ttl 4
/// < out  1::1 > 2::2 udp hop 7
/// < back 1.0.0.1 > 2.0.0.2 udp ttl 4
/// ! m.disable eth0
/// = m.interfaces eth0 disabled\neth1 enabled
/// ! m.enable eth0
/// ! m.move 2 1
/// = m.rules add out eth1 mod ip6-hop-limit 7\nadd in eth0 ip-ttl < 5 drop
/// ! m.disable eth0
/// > a    1.0.0.1 > 2.0.0.2 udp ttl 4
/// < out  1.0.0.1 > 2.0.0.2 udp ttl 4
/// = m.drops.rule 1
/// = m.bytes1 76
/// = m.unfit_options 0
/// = m.tables table of 2 rules, 3 keys, 3 masks, 0 probes, 132424 bytes
/// = m.tables_verbose table of 2 rules, 3 keys, 3 masks, 0 probes, 132424 bytes\nmask 0 0 0 0 0 0 0 0 keys 1\n  id2 out eth1 mod ip6-hop-limit 7\nmask 100 0 0 fc00000000000000 0 0 0 0 keys 1\n  id1 in eth0 ip-ttl < 5 drop\nmask 100 0 0 ff00000000000000 0 0 0 0 keys 1\n  id1 in eth0 ip-ttl < 5 drop
/// ! m.reset_counts
/// = m.bytes1 0
/// ! m.replace 1 all mod ip-ttl 3
/// ! m.flush
/// = m.rules
/// ```
///
/// A stateful rule is about the connections that begin with a packet that it matches:
/// all their packets, both ways, ICMP errors about them and fragments too. What it
/// does to addresses, ports and sequence numbers is undone in reverse.
///
/// ```click
/// lan -> m :: Middlebox(add-stateful ip-saddr 10.0.0.0/8 ip-proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000,
///     add-stateful ip-proto udp in lan accept, all drop, ip-proto tcp accept, INTERFACES lan wan) -> out
/// wan -> [1]m[1] -> back
/// > lan  10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// > wan  2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1
/// < out  9.9.9.9:4000 > 2.0.0.2:80 tcp syn
/// < back 2.0.0.2:80 > 10.0.0.1:1000 tcp syn ack 1
/// = m.connections tcp 10.0.0.1:1000 > 2.0.0.2:80 id1
/// = m.connections_verbose tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 expires 120 s transient flags S SA as 9.9.9.9:4000 > 2.0.0.2:80
/// = m.packets1 2
/// > wan  2.0.0.2:53 > 10.0.0.1:9 udp
/// = m.drops.rule 1
/// > lan  10.0.0.1:9 > 2.0.0.2:53 udp
/// > wan  2.0.0.2:53 > 10.0.0.1:9 udp
/// < out  10.0.0.1:9 > 2.0.0.2:53 udp
/// < back 2.0.0.2:53 > 10.0.0.1:9 udp
/// = m.connection_count 2
/// + 130s
/// = m.connection_count 1
/// > lan  10.0.0.1:9 > 2.0.0.2:53 udp
/// < out  10.0.0.1:9 > 2.0.0.2:53 udp
/// = m.connection_events 2\tadded\n1\texpired\n0\tevicted\n0\trefused
/// ! m.timeout udp 30
/// = m.timeouts udp 30\ntcp-established 14400\ntcp-transient 120
/// ```
///
/// `test` says what would become of a packet, by which rules and which connection, and
/// changes nothing.
///
/// ```click
/// lan -> m :: Middlebox(add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000,
///     in wan drop, proto tcp accept, INTERFACES lan wan) -> out;  wan -> [1]m[1] -> back
/// ! m.command test in wan 2.0.0.2:80 > 9.9.9.9:4000 udp
/// = m.said in wan: 2.0.0.2:80 > 9.9.9.9:4000 udp ttl 64 len 28\nrule 2 id2: add in wan drop\ndropped by rule 2 id2
/// ! m.command test in lan 10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// = m.said in lan: 10.0.0.1:1000 > 2.0.0.2:80 tcp syn ttl 64 len 40\nrule 3 id3: add proto tcp accept\nrule 1 id1: add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000\nbegins connection tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 as 9.9.9.9:4000 > 2.0.0.2:80\nout wan: 9.9.9.9:4000 > 2.0.0.2:80 tcp syn ttl 64 len 40
/// = m.connection_count 0
/// > lan 10.0.0.1:1000 > 2.0.0.2:80 tcp syn
/// > wan 2.0.0.2:80 > 9.9.9.9:4000 udp
/// < out 9.9.9.9:4000 > 2.0.0.2:80 tcp syn
/// ! m.command test in wan 2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1
/// = m.said in wan: 2.0.0.2:80 > 9.9.9.9:4000 tcp syn ack 1 ttl 64 len 40\nrule 2 id2: add in wan drop\nrule 3 id3: add proto tcp accept\nof connection tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 as 9.9.9.9:4000 > 2.0.0.2:80, with its rules:\nrule 1 id1: add-stateful in lan proto tcp map ip-saddr 9.9.9.9 map tcp-sport 4000\naccepted by rule 3 id3, whatever drops it\nout lan: 2.0.0.2:80 > 10.0.0.1:1000 tcp syn ack 1 ttl 64 len 40
/// = m.packets2 1
/// = m.connections_verbose tcp 10.0.0.1:1000 > 2.0.0.2:80 id1 expires 120 s transient flags S . as 9.9.9.9:4000 > 2.0.0.2:80
/// ```
///
/// Where the table is full of connections that were answered, others find no room;
/// where all ports are taken, no port.
///
/// ```click
/// a -> m :: Middlebox(add-stateful ip-proto udp accept,
///     add-stateful ip-proto 99 map ip-saddr 9.9.9.9, CONNECTIONS 2) -> b
/// > a 1.0.0.1:5 > 2.0.0.2:6 udp
/// > a 2.0.0.2:6 > 1.0.0.1:5 udp
/// > a 1.0.0.1 > 2.0.0.2 proto 99
/// > a 1.0.0.3 > 2.0.0.2 proto 99
/// < b 1.0.0.1:5 > 2.0.0.2:6 udp
/// < b 2.0.0.2:6 > 1.0.0.1:5 udp
/// < b 9.9.9.9 > 2.0.0.2 proto 99
/// = m.drops.no_port 1
/// > a 2.0.0.2 > 9.9.9.9 proto 99
/// < b 2.0.0.2 > 1.0.0.1 proto 99
/// > a 1.0.0.1:7 > 2.0.0.2:6 udp
/// = m.drops.full 1
/// ```
///
/// Where a rule looks behind the IP header, or is about connections, fragments are judged
/// by their own IP header and the headers that the first fragment of their packet has, and
/// go where that goes. They wait up to two seconds for it. A first fragment without all
/// headers, fragments that overlap, and all others of such packets go nowhere.
///
/// ```click
/// in -> m :: Middlebox(tcp-dport 5000 drop) -> out
/// > in  1.0.0.1 > 2.0.0.2 tcp id 1 frag 24 "late"
/// = m.waiting_fragments 1
/// > in  1.0.0.1:9 > 2.0.0.2:5000 tcp syn id 1 frag 0+ "data"
/// = m.waiting_fragments 0
/// = m.drops.rule 2
/// > in  1.0.0.1 > 2.0.0.2 tcp id 2 frag 24 "late"
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 2 frag 0+ "data"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 2 frag 0+ "data"
/// < out 1.0.0.1 > 2.0.0.2 tcp id 2 frag 24 "late"
/// > in  hex 4500002400032000400600000100000102000002 00091388000000000000000050020000
/// > in  1.0.0.1 > 2.0.0.2 tcp id 3 frag 16 "rest"
/// = m.drops.tiny_fragment 2
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 4 frag 0+ "data"
/// > in  1.0.0.1 > 2.0.0.2 tcp id 4 frag 16+ "overlaps"
/// > in  1.0.0.1:9 > 2.0.0.2:80 tcp syn id 5 frag 0+ "longer data."
/// > in  1.0.0.1 > 2.0.0.2 tcp id 5 frag 24 "overlaps"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 4 frag 0+ "data"
/// < out 1.0.0.1:9 > 2.0.0.2:80 tcp syn id 5 frag 0+ "longer data."
/// = m.drops.overlapping_fragment 1
/// > in  1.0.0.1 > 2.0.0.2 tcp id 6 frag 24 "lone"
/// + 5s
/// = m.drops.lone_fragment 1
/// = m.drops.excess_fragment 0
/// ```
/// ```click
/// in -> m :: Middlebox(add-stateful ip-saddr 10.0.0.0/8 map ip-saddr 9.9.9.9 map udp-sport 4000) -> out
/// > in  10.0.0.1 > 2.0.0.2 udp id 7 frag 16 "late"
/// > in  10.0.0.1:5 > 2.0.0.2:6 udp id 7 frag 0+ "a packet"
/// < out 9.9.9.9:4000 > 2.0.0.2:6 udp id 7 frag 0+ "a packet"
/// < out 9.9.9.9 > 2.0.0.2 udp id 7 frag 16 "late"
/// ```
///
/// Packets that should have an IP header and have none are dropped where there are rules. Packets
/// that are neither IPv4 nor IPv6 go on, unless `other` says otherwise; no rule is about them.
///
/// ```click
/// in -> m :: Middlebox(ip-proto udp drop, other arp) -> out
/// > in  eth hex 060000000002060000000001 0800 44000014000000000000000001000001 02000002
/// > in  eth hex 060000000002060000000001 8864 1100000100020021
/// > in  eth hex 060000000002060000000001 0806 0001
/// < out eth hex 060000000002060000000001 0806 0001
/// = m.drops.malformed 1
/// = m.drops.other 1
/// = m.other arp
/// = m.rules other arp\nadd ip-proto udp drop
/// ! m.other accept
/// > in  eth hex 060000000002060000000001 8864 1100000100020021
/// < out eth hex 060000000002060000000001 8864 1100000100020021
/// ```
#[derive(Clone, Element)]
#[element(args = Arguments, methods, ports = "1-/=", processing = "h/h", flow = "#/#")]
pub struct Middlebox {
    in_force: InForce,
    interfaces: Interfaces,
    forwarding: Option<Forwarding>,
    mtu: usize,
    said: String,
    /// How many connections there may be.
    limit: usize,
    connections: Common<Connections>,
    datagrams: Common<FragmentTracker<HeldFragment>>,
}

#[derive(Args)]
pub struct Arguments {
    /// A rule, as commands add it, or `other` with what becomes of what is no IP packet.
    #[arg(rest)]
    rules: Vec<Line>,
    /// A file of rules, which come before the others.
    #[arg(keyword)]
    file: Option<String>,
    /// What the interfaces are called whose packets come in, in order.
    #[arg(keyword)]
    interfaces: Option<Words>,
    /// What the interfaces are called by which packets leave, in order.
    #[arg(keyword)]
    out: Option<Words>,
    /// How packets are forwarded behind it, `bridge` or `router`: rules that could do nothing there
    /// are refused.
    #[arg(keyword)]
    forwarding: Option<Forwarding>,
    /// The longest IP packet that options may be added to, once they are.
    #[arg(keyword, default = 1500)]
    mtu: usize,
    /// How many connections there may be. Workers share them.
    #[arg(keyword, default = 1_048_576)]
    connections: usize,
}

/// A line of a configuration or of a file of rules.
pub enum Line {
    /// A rule.
    Rule(Rule),
    /// The verdict on packets that are neither IPv4 nor IPv6.
    Other(Other),
}

impl Line {
    fn of(command: Command) -> Option<Line> {
        match command {
            Command::Add(rule) => Some(Line::Rule(rule)),
            Command::SetOther(other) => Some(Line::Other(other)),
            _ => None,
        }
    }

    /// The rules of some lines, and what the last says of other packets that says anything.
    fn sorted(lines: Vec<Line>) -> (Vec<Rule>, Option<Other>) {
        let (mut rules, mut other) = (Vec::with_capacity(lines.len()), None);
        for line in lines {
            match line {
                Line::Rule(rule) => rules.push(rule),
                Line::Other(it) => other = Some(it),
            }
        }
        (rules, other)
    }
}

impl FromArg for Line {
    const SYNTAX: &'static str = "a rule, such as `tcp-dport 80 mod tcp-dport 443`";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        let line = command(text)?.and_then(Line::of);
        line.ok_or_else(|| ArgError::new(format!("`{text}` is not {}", Line::SYNTAX)))
    }
}

/// Rules, if there are places for them.
fn few_enough(rules: Rules) -> Result<Rules, ArgError> {
    match rules.slots() > PLACES {
        true => Err(ArgError::new(format!("{} rules; there can be {PLACES}", rules.len()))),
        false => Ok(rules),
    }
}

impl Build for Middlebox {
    type Args = Arguments;

    fn build(args: Arguments, setup: &Setup) -> Result<Self, ArgError> {
        let words = |words: Option<Words>| words.map(|words| words.words);
        let interfaces = Interfaces::new(words(args.interfaces), words(args.out), setup.inputs)?;
        let misplaced = |rule: &Rule| misplaced(rule, &interfaces, args.forwarding);
        let loaded = args.file.as_ref().map(|path| file::load(path, misplaced)).transpose();
        let loaded = loaded.map_err(|error| error.at("FILE"))?.unwrap_or_default();
        let (mut rules, path) = (loaded.rules, args.file.unwrap_or_default());
        loaded.warnings.iter().for_each(|said| (setup.warn)(format!("{path}: {said}")));
        let (own, other) = Line::sorted(args.rules);
        if let Some((remark, rule)) = own.iter().find_map(|rule| Some((misplaced(rule)?, rule))) {
            return Err(refused(&remark, rule));
        }
        let of_file = rules.len();
        rules.extend(own);
        let warnings = warnings_of_all(rules.iter(), MOST_SAID);
        for (at, remark) in warnings.iter().filter(|(at, _)| *at >= of_file) {
            (setup.warn)(remark.line(&rules[*at]));
        }
        let mut rules = Rules::new(rules);
        rules.other = other.or(loaded.other).unwrap_or_default();
        Ok(Middlebox {
            in_force: InForce::new(few_enough(rules)?),
            interfaces,
            forwarding: args.forwarding,
            mtu: args.mtu,
            said: String::new(),
            limit: args.connections,
            connections: Common::default(),
            datagrams: Common::default(),
        })
    }
}

/// That a rule can do nothing here.
fn refused(remark: &Remark, rule: &Rule) -> ArgError {
    ArgError::new(Remark { help: None, ..remark.clone() }.line(rule))
        .help(remark.help.clone().unwrap_or_default())
}

/// Warnings as answers have them, a line each.
fn warned(warnings: impl IntoIterator<Item = String>) -> String {
    warnings.into_iter().fold(String::new(), |all, said| all + "\nwarning: " + &said)
}

impl Middlebox {
    /// The element after a line of the language.
    fn obey(&self, line: &str, names: &Names) -> Result<Self, ArgError> {
        let Some(command) = command(line)? else { return Ok(self.clone()) };
        let mut warnings = Vec::new();
        if let Command::Add(rule) | Command::Replace(_, rule) = &command {
            if let Some(Remark { part, message, help }) = self.misplaced(rule) {
                // Whoever asked by a control socket sees the message alone.
                let help = help.map_or(String::new(), |help| format!("; {help}"));
                return Err(Fault::new(place(line, part), message + &help).into());
            }
            let others = self.in_force.rules().entries().map(|entry| &entry.rule);
            warnings = warnings_beside(rule, others);
            warnings.truncate(MOST_SAID);
        }
        let mut new = self.after(&command, names)?;
        if let Command::Add(rule) | Command::Replace(_, rule) = &command {
            new.said += &warned(warnings.iter().map(|remark| remark.line(rule)));
        }
        Ok(new)
    }

    /// Why a rule can do nothing here.
    fn misplaced(&self, rule: &Rule) -> Option<Remark> {
        misplaced(rule, &self.interfaces, self.forwarding)
    }

    /// The element after a command.
    fn after(&self, command: &Command, names: &Names) -> Result<Self, ArgError> {
        let mut new = self.clone();
        let mut rules = Rules::clone(self.in_force.rules());
        let said = match command {
            Command::Enable(names) => new.interfaces.set(names, true),
            Command::Disable(names) => new.interfaces.set(names, false),
            Command::Test(sketch) => self.tried(sketch, 0),
            Command::Save(path) => {
                let text = self.in_force.rules().text();
                names.files().write("save", path, text.as_bytes())?;
                Ok(format!("saved {} rules", self.in_force.rules().len()))
            }
            Command::Load(path) => {
                let file::Loaded { rules: loaded, other, warnings } =
                    file::load_named(names.files(), path, |rule| self.misplaced(rule))?;
                rules.other = other.unwrap_or(rules.other);
                let said = format!("loaded {} rules", loaded.len());
                rules.load(loaded);
                Ok(said + &warned(warnings))
            }
            Command::List(Form::Text) => Err("`list` is a handler to be read".into()),
            Command::List(Form::Json) => Err("`list_json` is a handler to be read".into()),
            other => {
                rules.obey(other).unwrap_or_else(|| Err("that is a handler to be read".into()))
            }
        };
        new.said = said.map_err(ArgError::new)?;
        let is_about_rules = !matches!(
            command,
            Command::Test(_) | Command::Save(_) | Command::Enable(_) | Command::Disable(_)
        );
        if is_about_rules {
            new.in_force = self.in_force.with(few_enough(rules)?);
        }
        Ok(new)
    }

    /// The element after the command of that name.
    fn told(&self, name: &str, text: &str, names: &Names) -> Result<Self, ArgError> {
        let line = format!("{name} {text}");
        // Errors are about the text that was written.
        let unnamed = |mut error: ArgError| {
            let shift = |(at, len): (usize, usize)| (at.saturating_sub(name.len() + 1), len);
            error.range = error.range.map(shift);
            error
        };
        self.obey(&line, names).map_err(unnamed)
    }

    /// Tests a packet at a time, as connections count it.
    fn tried(&self, sketch: &Sketch, now: u64) -> Result<String, String> {
        let Middlebox { interfaces, connections, datagrams, mtu, in_force, .. } = self;
        let port = sketch.input.as_ref().map_or(Ok(0), |name| interfaces.port(name))?;
        let rules = in_force.rules();
        let pass = Pass { rules, interfaces, connections, datagrams, mtu: *mtu, port };
        let is_enabled = interfaces.is_enabled(port);
        Trial { pass, in_force, is_enabled, now }.of(&sketch.packet)
    }
}

#[handlers]
impl Middlebox {
    /// The commands that make the rules, one a line.
    #[read]
    fn rules(&self) -> String {
        self.in_force.rules().text()
    }
    /// What the last command answered.
    #[read]
    fn said(&self) -> String {
        self.said.clone()
    }
    /// Warnings about the rules, a line each, with the number of the rule.
    #[read]
    fn warnings(&self) -> String {
        let entries = self.in_force.rules().entries();
        let warnings = warnings_of_all(entries.map(|entry| &entry.rule), usize::MAX);
        let line = |(at, remark): &(usize, Remark)| {
            let rule = self.in_force.rules().at(*at).map(|entry| remark.line(&entry.rule));
            format!("rule {}: {}\n", at + 1, rule.unwrap_or_default())
        };
        warnings.iter().map(line).collect()
    }
    /// The interfaces whose packets come in, and whether rules are attached to them.
    #[read]
    fn interfaces(&self) -> String {
        self.interfaces.to_string()
    }
    /// Where the packet that is the parameter, `[in IF] PACKET`, would go, and why.
    #[read]
    fn test(&self, ask: &Ask) -> String {
        let Some(sketch) = Sketch::parse(ask.param) else { return "a packet is missing".into() };
        self.tried(&sketch, ask.now.0.unsigned_abs()).unwrap_or_else(|error| error)
    }
    /// Does what a command of the language says.
    #[write]
    fn command(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.obey(text, names)
    }
    /// Adds a rule behind the others.
    #[write]
    fn add(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("add", text, names)
    }
    /// Puts a rule in another's place: `N MATCH… TARGET…`.
    #[write]
    fn replace(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("replace", text, names)
    }
    /// Removes a rule, by its position or its identifier.
    #[write]
    fn delete(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("delete", text, names)
    }
    /// Moves a rule: `N M`.
    #[write(r#move)]
    fn move_rule(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("move", text, names)
    }
    /// Removes all rules, and forgets all connections.
    #[write]
    fn flush(&self, _: &str, names: &Names) -> Result<Self, ArgError> {
        self.after(&Command::Flush, names)
    }
    /// Attaches the rules to interfaces.
    #[write]
    fn enable(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("enable", text, names)
    }
    /// Detaches the rules from interfaces.
    #[write]
    fn disable(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("disable", text, names)
    }
    /// Writes the rules to a file.
    #[write]
    fn save(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("save", text, names)
    }
    /// Puts the rules of a file in place of all, or does nothing.
    #[write]
    fn load(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("load", text, names)
    }
    /// How long idle connections are kept, in seconds.
    #[read]
    fn timeouts(&self) -> String {
        let timeouts = &self.in_force.rules().timeouts;
        format!(
            "udp {}\ntcp-established {}\ntcp-transient {}\n",
            timeouts.udp, timeouts.tcp_established, timeouts.tcp_transient
        )
    }
    /// Says how long idle connections are kept: `udp 600`.
    #[write]
    fn timeout(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("timeout", text, names)
    }
    /// The verdict on packets that are neither IPv4 nor IPv6.
    #[read]
    fn other(&self) -> String {
        self.in_force.rules().other.word().into()
    }
    /// Says what becomes of packets that are neither IPv4 nor IPv6: `accept`, `arp` or `drop`.
    #[write(other)]
    fn set_other(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        self.told("other", text, names)
    }
    /// Begins counting anew.
    #[write]
    fn reset_counts(&self, _: &str, names: &Names) -> Result<Self, ArgError> {
        self.after(&Command::ResetCounters, names)
    }
}

impl PerBatch for Middlebox {
    type On = on::Any;
    type Local = Books;
    type Fate = Exit;

    fn begin(&self, books: &mut Books, _: &mut Cx) -> Result<(), ArgError> {
        books.is_home = true;
        Ok(())
    }

    fn end(&self, books: &mut Books, cx: &mut Cx) {
        books.datagrams.change(FragmentTracker::clear);
        release(&books.datagrams, 0, cx);
    }

    fn held(&self, books: &Books) -> usize {
        if books.is_home { books.datagrams.read(FragmentTracker::queued) } else { 0 }
    }

    fn settle(&self, books: &mut Books) {
        books.follow(&self.in_force, (&self.connections, self.limit), &self.datagrams);
    }

    fn prepare(&self, before: &Self) -> Option<Self> {
        let in_force = self.in_force.in_place_of(&before.in_force)?;
        Some(Middlebox { in_force, ..self.clone() })
    }

    fn wake(&self, books: &mut Books, cx: &mut Cx) {
        books.wake(cx);
    }

    fn batch(&self, books: &mut Books, port: usize, batch: Batch, cx: &mut Cx) {
        let rules = self.in_force.rules();
        let is_idle = rules.is_empty() && rules.other == Other::Accept;
        if is_idle || !self.interfaces.is_enabled(port) {
            cx.emit_batch(Exit::Out(port as u8), batch);
            return;
        }
        let Middlebox { interfaces, connections, datagrams, mtu, .. } = self;
        Pass { rules, interfaces, connections, datagrams, mtu: *mtu, port }.burst(books, batch, cx);
    }
}
