//! `Middlebox`: packets by one-line rules.

use crate::books::Books;
use crate::burst::Pass;
use crate::connections::{Connections, Fresh};
use crate::exits::Exit;
use crate::headers::Headers;
use crate::holds::Seen;
use crate::in_force::InForce;
use crate::interfaces::Interfaces;
use crate::judge::{is_dropped, rewrite};
use crate::language::{Command, Form, command, commands};
use crate::matcher::PLACES;
use crate::rule::Rule;
use crate::rules::Rules;
use castanet_engine::prelude::*;

/// Matches, drops and rewrites IPv4 and IPv6 packets by one-line rules.
///
/// A rule says what a packet must be and what becomes of it: `tcp-dport 80 mod
/// tcp-dport 443`. All rules that are about a packet apply, in order: the last to
/// set a field wins, `accept` beats `drop`, and of a packet that is dropped nothing
/// is rewritten. All matches are about the packet as it came. What is no IP packet,
/// or what no rule is about, goes on as it is. `docs/middlebox.md` has the language;
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
}

#[derive(Args)]
pub struct Arguments {
    /// A rule, as commands add it.
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

/// A rule as a configuration has it.
pub struct Line(Rule);

impl FromArg for Line {
    const SYNTAX: &'static str = "a rule, such as `tcp-dport 80 mod tcp-dport 443`";
    fn from_arg(text: &str, _: &Names) -> Result<Self, ArgError> {
        match command(text)? {
            Some(Command::Add(rule)) => Ok(Line(rule)),
            _ => Err(ArgError::new(format!("`{text}` is not {}", Line::SYNTAX))),
        }
    }
}

/// The rules of a file.
fn read_file(path: &str) -> Result<Vec<Rule>, ArgError> {
    let text = std::fs::read_to_string(path).map_err(|error| ArgError::of_file(path, &error))?;
    rules_of(&text).map_err(|error| error.at(path))
}

/// The rules of a file that a command names.
fn load(path: &str, names: &Names) -> Result<Vec<Rule>, ArgError> {
    let bytes = names.files().read("load", path, castanet_engine::files::LONGEST)?;
    let text = String::from_utf8(bytes).map_err(|_| ArgError::new("is not UTF-8").at(path))?;
    rules_of(&text).map_err(|error| error.at(path))
}

/// Rules, if there are places for them.
fn few_enough(rules: Rules) -> Result<Rules, ArgError> {
    match rules.slots() > PLACES {
        true => Err(ArgError::new(format!("{} rules; there can be {PLACES}", rules.len()))),
        false => Ok(rules),
    }
}

/// The rules of a text of commands that do nothing but add some.
fn rules_of(text: &str) -> Result<Vec<Rule>, ArgError> {
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let commands = commands(text).map_err(|faults| {
        let said = faults.iter().map(|fault| {
            let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
            format!("line {}: {}{help}", line(fault.range.start), fault.message)
        });
        ArgError::new(said.collect::<Vec<_>>().join("\n"))
    })?;
    let rules = commands.into_iter().map(|(at, command)| match command {
        Command::Add(rule) => Ok(rule),
        _ => Err(ArgError::new(format!("line {}: a file of rules only adds rules", line(at)))),
    });
    rules.collect()
}

impl Build for Middlebox {
    type Args = Arguments;

    fn build(args: Arguments, setup: &Setup) -> Result<Self, ArgError> {
        let mut rules = match &args.file {
            Some(path) => read_file(path).map_err(|error| error.at("FILE"))?,
            None => Vec::new(),
        };
        rules.extend(args.rules.into_iter().map(|line| line.0));
        let words = |words: Option<Words>| words.map(|words| words.words);
        let interfaces = Interfaces::new(words(args.interfaces), words(args.out), setup.inputs)?;
        Ok(Middlebox {
            in_force: InForce::new(few_enough(Rules::new(rules))?),
            interfaces,
            mtu: args.mtu,
            said: String::new(),
            limit: args.connections,
            connections: Common::default(),
        })
    }
}

impl Middlebox {
    /// The element after a command.
    fn after(&self, command: &Command, names: &Names) -> Result<Self, ArgError> {
        let mut new = self.clone();
        let mut rules = Rules::clone(self.in_force.rules());
        let said = match command {
            Command::Enable(names) => new.interfaces.set(names, true),
            Command::Disable(names) => new.interfaces.set(names, false),
            Command::Test(packet) => self.tried(packet),
            Command::Save(path) => {
                let text = self.in_force.rules().text();
                names.files().write("save", path, text.as_bytes())?;
                Ok(format!("saved {} rules", self.in_force.rules().len()))
            }
            Command::Load(path) => {
                let loaded = load(path, names)?;
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
    fn told(&self, name: &str, text: &str, names: &Names) -> Result<Self, ArgError> {
        let line = format!("{name} {text}");
        // Errors are about the text that was written.
        let unnamed = |mut error: ArgError| {
            let shift = |(at, len): (usize, usize)| (at.saturating_sub(name.len() + 1), len);
            error.range = error.range.map(shift);
            error
        };
        match command(&line).map_err(|fault| unnamed(fault.into()))? {
            Some(command) => self.after(&command, names),
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
    fn command(&self, text: &str, names: &Names) -> Result<Self, ArgError> {
        command(text)?.map_or_else(|| Ok(self.clone()), |command| self.after(&command, names))
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

    fn settle(&self, books: &mut Books) {
        books.follow(&self.in_force, (&self.connections, self.limit));
    }

    fn prepare(&self, before: &Self) {
        self.in_force.heirs(before.in_force.rules());
    }

    fn wake(&self, books: &mut Books, cx: &mut Cx) {
        books.wake(cx);
    }

    fn batch(&self, books: &mut Books, port: usize, batch: Batch, cx: &mut Cx) {
        let rules = self.in_force.rules();
        if rules.is_empty() || !self.interfaces.is_enabled(port) {
            cx.emit_batch(Exit::Out(port as u8), batch);
            return;
        }
        let Middlebox { interfaces, connections, mtu, .. } = self;
        Pass { rules, interfaces, connections, mtu: *mtu, port }.burst(books, batch, cx);
    }
}
