//! `Middlebox`: packets by one-line rules.

use crate::books::Books;
use crate::burst::Pass;
use crate::connections::{Connections, Fresh};
use crate::exits::Exit;
use crate::fragments::{HeldFragment, release};
use crate::headers::Headers;
use crate::holds::Seen;
use crate::in_force::InForce;
use crate::interfaces::Interfaces;
use crate::judge::{is_dropped, rewrite};
use crate::language::{Command, Form, command, commands};
use crate::matcher::PLACES;
use crate::rule::Rule;
use crate::rules::{Other, Rules};
use castanet_engine::prelude::*;
use castanet_kit::datagrams::Datagrams;

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
/// in -> m :: Middlebox(tcp-dport 80 mod tcp-dport 443, ip-proto udp drop) -> out
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
/// = m.said 2 id4 add all mod ip-ttl 9\nout 1.0.0.1 > 2.0.0.2 udp ttl 9 len 60
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
/// What should have an IP header and has none goes nowhere where there are rules. What is neither
/// IPv4 nor IPv6 goes on, unless `other` says otherwise; no rule is about it.
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
    mtu: usize,
    said: String,
    /// How many connections there may be.
    limit: usize,
    connections: Common<Connections>,
    datagrams: Common<Datagrams<HeldFragment>>,
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
    /// The longest IP packet that options may be added to, once they are.
    #[arg(keyword, default = 1500)]
    mtu: usize,
    /// How many connections there may be. Workers share them.
    #[arg(keyword, default = 1_048_576)]
    connections: usize,
}

/// What a configuration or a file of rules has in a line.
pub enum Line {
    /// A rule.
    Rule(Rule),
    /// What becomes of what is no IP packet.
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

/// The lines of a file of rules.
fn read_file(path: &str) -> Result<Vec<Line>, ArgError> {
    let text = std::fs::read_to_string(path).map_err(|error| ArgError::of_file(path, &error))?;
    rules_of(&text).map_err(|error| error.at(path))
}

/// Rules, if there are places for them.
fn few_enough(rules: Rules) -> Result<Rules, ArgError> {
    match rules.slots() > PLACES {
        true => Err(ArgError::new(format!("{} rules; there can be {PLACES}", rules.len()))),
        false => Ok(rules),
    }
}

/// The lines of a text of commands that do nothing but add rules, and say what becomes of others.
fn rules_of(text: &str) -> Result<Vec<Line>, ArgError> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let commands = commands(text).map_err(|faults| {
        let said = faults.iter().map(|fault| {
            let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line(fault.range.start), fault.message)
        });
        ArgError::new(said.collect::<Vec<_>>().join("\n"))
    })?;
    let lines = commands.into_iter().map(|(at, command)| {
        let wrong = || format!("line {}: a file of rules only adds rules", line(at));
        Line::of(command).ok_or_else(|| ArgError::new(wrong()))
    });
    lines.collect()
}

impl Build for Middlebox {
    type Args = Arguments;

    fn build(args: Arguments, setup: &Setup) -> Result<Self, ArgError> {
        let mut rules = match &args.file {
            Some(path) => read_file(path).map_err(|error| error.at("FILE"))?,
            None => Vec::new(),
        };
        rules.extend(args.rules);
        let (rules, other) = Line::sorted(rules);
        let mut rules = Rules::new(rules);
        rules.other = other.unwrap_or_default();
        let words = |words: Option<Words>| words.map(|words| words.words);
        let interfaces = Interfaces::new(words(args.interfaces), words(args.out), setup.inputs)?;
        Ok(Middlebox {
            in_force: InForce::new(few_enough(rules)?),
            interfaces,
            mtu: args.mtu,
            said: String::new(),
            limit: args.connections,
            connections: Common::default(),
            datagrams: Common::default(),
        })
    }
}

impl Middlebox {
    /// The element after a command.
    fn after(&self, command: &Command) -> Result<Self, ArgError> {
        let mut new = self.clone();
        let mut rules = Rules::clone(self.in_force.rules());
        let said = match command {
            Command::Enable(names) => new.interfaces.set(names, true),
            Command::Disable(names) => new.interfaces.set(names, false),
            Command::Test(packet) => self.tried(packet),
            Command::Save(path) => match std::fs::write(path, self.in_force.rules().text()) {
                Ok(()) => Ok(format!("saved {} rules", self.in_force.rules().len())),
                Err(error) => return Err(ArgError::of_file(path, &error)),
            },
            Command::Load(path) => {
                let (loaded, other) = Line::sorted(read_file(path)?);
                rules.other = other.unwrap_or_default();
                let said = format!("loaded {} rules", loaded.len());
                rules.load(loaded);
                Ok(said)
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
    fn told(&self, name: &str, text: &str) -> Result<Self, ArgError> {
        let line = format!("{name} {text}");
        // Errors are about the text that was written.
        let unnamed = |mut error: ArgError| {
            let shift = |(at, len): (usize, usize)| (at.saturating_sub(name.len() + 1), len);
            error.range = error.range.map(shift);
            error
        };
        match command(&line).map_err(|fault| unnamed(fault.into()))? {
            Some(command) => self.after(&command),
            None => Ok(self.clone()),
        }
    }

    /// Which rules are about a packet, and what comes out.
    fn tried(&self, sketch: &str) -> Result<String, String> {
        let built = castanet_engine::wire::sketch::build(sketch)?;
        let mut packet = Packet::from_bytes(&built.bytes);
        if built.layer == castanet_engine::wire::sketch::Layer::Network {
            packet.set_network_header(0, 0);
        }
        let Some(headers) = Headers::find(&packet) else {
            return Ok(format!("no IP packet: no rule is about it\nout {sketch}\n"));
        };
        // Asked rule by rule: what the table finds is to be the same.
        let (input, output) = self.interfaces.names(0);
        let seen = Seen { bytes: packet.bytes(), headers: &headers, input, output };
        let entries = self.in_force.rules().entries().enumerate();
        let found: Vec<_> = entries.filter(|(_, entry)| entry.rule.holds(&seen)).collect();
        let mut said = String::new();
        for (at, entry) in &found {
            said += &format!("{} id{} {}\n", at + 1, entry.id, entry.rule.command());
        }
        let entries = || found.iter().map(|(_, entry)| *entry);
        let plans = || entries().map(|entry| &entry.plan);
        if is_dropped(plans(), || 0) {
            return Ok(said + "dropped\n");
        }
        // A connection may give numbers by chance; what it has here is an example.
        let mut connections = Connections::default();
        let stateful = entries().filter(|entry| entry.rule.stateful);
        let (seen, timeouts) = ((packet.bytes(), &headers), &self.in_force.rules().timeouts);
        let begun = match stateful.clone().next() {
            Some(_) => connections.begin(seen, stateful, timeouts, || 7, 0),
            None => None,
        };
        let mapped = match &begun {
            Some(Fresh::Begun(begun)) => connections.mapped(begun),
            _ => None,
        };
        rewrite(&mut packet, headers, plans(), mapped.as_ref(), self.mtu);
        let out = castanet_engine::wire::sketch::print(packet.bytes(), built.layer);
        Ok(format!("{said}out {out}\n"))
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
    /// The interfaces whose packets come in, and whether rules are attached to them.
    #[read]
    fn interfaces(&self) -> String {
        self.interfaces.to_string()
    }
    /// Which rules are about the packet that is the parameter, and what comes out.
    #[read]
    fn test(&self, ask: &Ask) -> String {
        self.tried(ask.param).unwrap_or_else(|error| error)
    }
    /// Does what a command of the language says.
    #[write]
    fn command(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        command(text)?.map_or_else(|| Ok(self.clone()), |command| self.after(&command))
    }
    /// Adds a rule behind the others.
    #[write]
    fn add(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("add", text)
    }
    /// Puts a rule in another's place: `N MATCH… TARGET…`.
    #[write]
    fn replace(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("replace", text)
    }
    /// Removes a rule, by its position or its identifier.
    #[write]
    fn delete(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("delete", text)
    }
    /// Moves a rule: `N M`.
    #[write(r#move)]
    fn move_rule(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("move", text)
    }
    /// Removes all rules, and forgets all connections.
    #[write]
    fn flush(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        self.after(&Command::Flush)
    }
    /// Attaches the rules to interfaces.
    #[write]
    fn enable(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("enable", text)
    }
    /// Detaches the rules from interfaces.
    #[write]
    fn disable(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("disable", text)
    }
    /// Writes the rules to a file.
    #[write]
    fn save(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("save", text)
    }
    /// Puts the rules of a file in place of all, or does nothing.
    #[write]
    fn load(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("load", text)
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
    fn timeout(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("timeout", text)
    }
    /// What becomes of packets that are neither IPv4 nor IPv6.
    #[read]
    fn other(&self) -> String {
        self.in_force.rules().other.word().into()
    }
    /// Says what becomes of packets that are neither IPv4 nor IPv6: `accept`, `arp` or `drop`.
    #[write(other)]
    fn set_other(&self, text: &str, _: &Names) -> Result<Self, ArgError> {
        self.told("other", text)
    }
    /// Begins counting anew.
    #[write]
    fn reset_counts(&self, _: &str, _: &Names) -> Result<Self, ArgError> {
        self.after(&Command::ResetCounters)
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
        books.datagrams.change(Datagrams::clear);
        release(&books.datagrams, 0, cx);
    }

    fn held(&self, books: &Books) -> usize {
        if books.is_home { books.datagrams.read(Datagrams::waiting) } else { 0 }
    }

    fn settle(&self, books: &mut Books) {
        books.follow(&self.in_force, (&self.connections, self.limit), &self.datagrams);
    }

    fn prepare(&self, before: &Self) {
        self.in_force.heirs(before.in_force.rules());
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
