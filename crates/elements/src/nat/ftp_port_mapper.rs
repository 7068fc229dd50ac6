//! `FTPPortMapper`: follows FTP `PORT` and `EPRT` commands through rewriters.

use super::name_resolution::{RewriterRef, rewriter};
use castanet_element::prelude::*;
use castanet_element::wire::ip_proto;
use castanet_kit::conntrack::Tuple4;
use castanet_kit::nat::{ChoiceContext, PortCommand, parse_port_command, replace_data};

/// Follows FTP `PORT` and `EPRT` commands through address translation.
///
/// A client behind a rewriter announces by `PORT` or `EPRT` the inner address and port on which
/// it listens; the server can not reach these. DATA_REWRITER makes a mapping as if a packet from
/// that port had come in on its input DATA_REWRITER_INPUT; the command is changed to the outer
/// address and port of that mapping; and CONTROL_REWRITER, a `TCPRewriter` or `IPRewriter` through
/// which the packets go afterwards, shifts sequence numbers by the change of the command's length.
/// The server's data port is the one before its command port. A command must begin its packet
/// and end in it. Both rewriters may be the same element.
///
/// ```click
/// in -> fm :: FTPPortMapper(rw, rw, 0) -> rw :: TCPRewriter(pattern 9.9.9.9 9000-14000# - - 0 1, drop)
///   -> out;  back -> [1] rw;  rw[1] -> home
/// > in   1.0.0.2:6587 > 2.0.0.2:21 tcp syn seq 99
/// = rw.table_size 1
/// > in   1.0.0.2:6587 > 2.0.0.2:21 tcp seq 100 ack 1 data 504f525420312c302c302c322c332c390d0a
/// > in   1.0.0.2:6587 > 2.0.0.2:21 tcp seq 118 ack 1 "NOOP"
/// > in   1.0.0.2:6588 > 2.0.0.2:21 tcp seq 118 ack 1 "QUIT"
/// > in   1.0.0.2:6588 > 2.0.0.2:21 udp
/// < out  9.9.9.9:9000 > 2.0.0.2:21 tcp syn seq 99
/// < out  9.9.9.9:9000 > 2.0.0.2:21 tcp seq 100 ack 1 data 504f525420392c392c392c392c33352c34310d0a
/// < out  9.9.9.9:9000 > 2.0.0.2:21 tcp seq 120 ack 1 "NOOP"
/// < out  9.9.9.9:9002 > 2.0.0.2:21 tcp seq 118 ack 1 "QUIT"
/// = fm.drops.not_tcp 1
/// = rw.lookup(2.0.0.2 20 9.9.9.9 9001) 2.0.0.2 20 1.0.0.2 777
/// > back 2.0.0.2:21 > 9.9.9.9:9000 tcp ack 124 tcpopt nop;nop;sack120:124
/// > back 2.0.0.2:20 > 9.9.9.9:9001 tcp syn
/// < home 2.0.0.2:21 > 1.0.0.2:6587 tcp ack 122 tcpopt nop;nop;sack118:122
/// < home 2.0.0.2:20 > 1.0.0.2:777 tcp syn
/// > back 2.0.0.2:21 > 9.9.9.9:9000 tcp acknum 124
/// < home 2.0.0.2:21 > 1.0.0.2:6587 tcp acknum 122
/// = fm.count 1
/// ```
#[derive(Element)]
#[element(room = "nat", args = FTPPortMapperArgs)]
pub struct FTPPortMapper {
    control: RewriterRef,
    data: RewriterRef,
    input: usize,
}

#[derive(Args)]
pub struct FTPPortMapperArgs {
    /// The rewriter of the connections with the commands.
    #[arg]
    control_rewriter: String,
    /// The rewriter of the data connections.
    #[arg]
    data_rewriter: String,
    /// The input of DATA_REWRITER whose pattern makes the mapping.
    #[arg]
    data_rewriter_input: i32,
}

impl Build for FTPPortMapper {
    type Args = FTPPortMapperArgs;

    fn build(it: FTPPortMapperArgs, setup: &Setup) -> Result<Self, ArgError> {
        let find = |name: &str, argument: &str, class: &str, classes: &[&str]| {
            let named = rewriter(setup, name);
            let fits = |it: &RewriterRef| classes.is_empty() || classes.contains(&it.class);
            named.filter(fits).ok_or_else(|| {
                let error = ArgError::new(format!("`{name}` is no {class}")).at(argument);
                match setup.element(name, None) {
                    Some(_) => error.click(format!("element type mismatch, expected {class}")),
                    None => error.click("does not name an element"),
                }
            })
        };
        let with_sequence_shifts = ["TCPRewriter", "IPRewriter"];
        let control =
            find(&it.control_rewriter, "CONTROL_REWRITER", "TCPRewriter", &with_sequence_shifts)?;
        let data = find(&it.data_rewriter, "DATA_REWRITER", "IPRewriterBase", &[])?;
        let input = usize::try_from(it.data_rewriter_input).ok();
        let input = input.filter(|&input| input < data.inputs);
        let input = input.ok_or_else(|| ArgError::new("DATA_REWRITER_INPUT out of range"))?;
        Ok(FTPPortMapper { control, data, input })
    }
}

/// A worker's counter.
#[derive(Default, Local)]
pub struct FTPPortMapperState {
    /// Number of commands that were changed.
    #[read]
    #[portable]
    count: u64,
}

impl FTPPortMapper {
    /// Changes the command in a packet; `None` if there is none, or a rewriter has no mapping.
    fn change(&self, packet: &mut Packet, cx: &mut Cx) -> Option<()> {
        let tcp = packet.tcp()?;
        let PortCommand { address, port, argument, .. } = &parse_port_command(tcp.payload())?;
        let (ports, length) = ((tcp.src_port(), tcp.dst_port()), tcp.payload().len());
        let (seq, command) = (tcp.seq(), parse_port_command(tcp.payload())?);
        let (worker, mut ip) = (cx.worker(), packet.ipv4()?);
        let dst = ip.dst();
        let flow = Tuple4::new((ip.src(), ports.0), (dst, ports.1), ip_proto::TCP);
        let anno = self.control.tables.get(worker)?.change(|table| {
            let zone = table.zone(&self.control.member)?;
            Some(table.mapping(zone, flow)?.0.reply_anno())
        })?;
        let data_port = ports.1.wrapping_sub(1);
        let data = Tuple4::new((*address, *port), (dst, data_port), ip_proto::TCP);
        let now = cx.now().nanos();
        let new = self.data.tables.get(worker)?.change(|table| {
            let zone = table.zone(&self.data.member)?;
            let mut context =
                ChoiceContext { worker, random: &mut |last| cx.random_numbers().in_range(0, last) };
            table.get_or_open(zone, self.input, data, anno, now, &mut context)
        })?;
        let text = command.argument_for(new.src().0, new.src().1);
        let longer = text.len() as i32 - argument.len() as i32;
        let changed = replace_data(ip.datagram_mut(), argument.clone(), text.as_bytes())?;
        replace_datagram(packet, &changed)?;
        self.control.tables.get(worker)?.change(|table| {
            let zone = table.zone(&self.control.member)?;
            let (mapping, back) = table.mapping(zone, flow)?;
            mapping.shifts().add(back, seq.wrapping_add(length as u32), longer);
            Some(())
        })
    }
}

/// Replaces a packet's datagram.
fn replace_datagram(packet: &mut Packet, datagram: &[u8]) -> Option<()> {
    let start = usize::try_from(packet.network_offset()?).ok()?;
    let length = start + datagram.len();
    match length.checked_sub(packet.len()) {
        Some(more) => drop(packet.put_back(more)),
        None => packet.truncate(length),
    }
    packet.bytes_mut().get_mut(start..)?.copy_from_slice(datagram);
    Some(())
}

impl PerBatch for FTPPortMapper {
    type On = on::Tcp;
    type Local = FTPPortMapperState;
    type Fate = ();

    fn batch(&self, state: &mut FTPPortMapperState, _: usize, mut batch: Batch, cx: &mut Cx) {
        for packet in batch.iter_mut() {
            state.count += u64::from(self.change(packet, cx).is_some());
        }
        cx.emit_batch((), batch);
    }
}
