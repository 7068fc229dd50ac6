//! Traces and captures that clients have asked for.
//!
//! A client has a lease and asks again before it ends; without that, workers stop to look. Traces
//! and captures go on through hot swaps.

use super::Router;
use super::calls::no_element;
use crate::graph::Element;
use castanet_element::class::Role;
use castanet_element::error::ArgError;
use castanet_element::exec::{
    CapturePoint, CaptureSession, CaptureSide, CapturedDrops, CapturedPacket, Lease, PacketFilter,
    TraceElement, TraceSession, TraceStep, TraceTable, WorkerCapture, WorkerTrace,
};
use castanet_element::fate::LossReason;
use castanet_element::time::Time;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time for which a trace or a capture goes on after its client has asked for it, or read it.
const LEASE: Duration = Duration::from_secs(10);
/// Traces and captures at a time.
const MAX_SESSIONS: usize = 8;
/// Steps or packets that one answer has.
const MAX_ANSWER: usize = 4096;
/// Bytes of steps after which an answer has no more.
const MAX_BYTES: usize = 2 << 20;
/// Places of one capture.
const MAX_PLACES: usize = 64;

/// A request for a trace.
pub struct TraceRequest {
    /// The packets that it is about.
    pub filter: Box<dyn PacketFilter>,
    /// The source whose packets it is about; all sources if not given.
    pub source: Option<String>,
    /// Number of packets.
    pub packets: u32,
    /// Bytes of each packet that are copied.
    pub snap_len: usize,
}

/// A request for a capture.
pub struct CaptureRequest {
    /// The packets that it is about.
    pub filter: Box<dyn PacketFilter>,
    /// The places; devices where packets enter and leave the graph if there are none, and no drops.
    pub places: Vec<CapturePlaceName>,
    /// Drops.
    pub drops: Option<CapturedDrops>,
    /// Number of packets.
    pub packets: u64,
    /// Bytes of each packet that are copied.
    pub snap_len: usize,
}

/// A place to capture packets at, as a person names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePlaceName {
    /// Name of an element, or of an interface.
    pub name: String,
    /// One side of the element; both if not given.
    pub side: Option<CaptureSide>,
    /// The number of the port; all ports if not given.
    pub port: Option<usize>,
}

/// The steps of a trace since it was read last.
pub struct TraceProgress {
    /// The steps, in order.
    pub steps: Vec<TraceStep>,
    /// Packets chosen so far.
    pub begun: u32,
    /// Packets that are yet to be chosen.
    pub remaining: u32,
    /// Packets that passed a source when there was no time to look at them, or no tag.
    pub missed: u64,
    /// Steps for which too many others waited.
    pub lost_steps: u64,
}

/// The packets of a capture since it was read last.
pub struct CaptureProgress {
    /// The packets.
    pub packets: Vec<CapturedPacket>,
    /// Whether all packets that were asked for are there.
    pub is_full: bool,
    /// Packets for which there was no time.
    pub missed: u64,
    /// Packets for which too many others waited.
    pub overflowed: u64,
}

/// A trace or a capture of a client, and the steps or packets that workers have sent.
struct ClientSession<S, T> {
    number: u64,
    session: Arc<S>,
    received: Receiver<T>,
}

/// Traces and captures that are on.
#[derive(Default)]
pub(super) struct Inspections {
    table: Arc<TraceTable>,
    last: u64,
    traces: Vec<ClientSession<TraceSession, TraceStep>>,
    captures: Vec<ClientSession<CaptureSession, Vec<CapturedPacket>>>,
}

impl Inspections {
    /// The number of another trace or capture. Those whose leases have ended make room.
    fn next(&mut self, now: Time) -> Result<u64, ArgError> {
        let Inspections { table, traces, captures, .. } = self;
        traces.retain(|it| {
            let is_over = it.session.lease().is_over(now);
            if is_over {
                table.forget(&it.session);
            }
            !is_over
        });
        captures.retain(|it| !it.session.lease().is_over(now));
        if self.traces.len() + self.captures.len() >= MAX_SESSIONS {
            return Err(ArgError::new(format!(
                "there are {MAX_SESSIONS} traces and captures already, which is the most"
            )));
        }
        self.last += 1;
        Ok(self.last)
    }

    fn is_empty(&self) -> bool {
        self.traces.is_empty() && self.captures.is_empty()
    }
}

/// The place of a session in a list.
fn place<S, T>(list: &[ClientSession<S, T>], what: &str, number: u64) -> Result<usize, ArgError> {
    list.iter().position(|it| it.number == number).ok_or_else(|| {
        ArgError::new(format!("there is no {what} {number}: its client was silent for too long"))
    })
}

impl TraceProgress {
    fn of(session: &TraceSession, steps: &Receiver<TraceStep>) -> TraceProgress {
        // First: all steps that it counts are there then.
        let remaining = session.remaining();
        let (mut all, mut bytes) = (Vec::new(), 0);
        while all.len() < MAX_ANSWER
            && bytes < MAX_BYTES
            && let Ok(step) = steps.try_recv()
        {
            bytes += session.received(&step);
            all.push(step);
        }
        TraceProgress {
            steps: all,
            begun: session.begun(),
            remaining,
            missed: session.missed(),
            lost_steps: session.lost_steps(),
        }
    }
}

impl CaptureProgress {
    fn of(session: &CaptureSession, received: &Receiver<Vec<CapturedPacket>>) -> CaptureProgress {
        // First: all packets that it counts are there then.
        let is_full = session.is_full();
        let (mut packets, mut bytes) = (Vec::new(), 0);
        while packets.len() < MAX_ANSWER
            && bytes < MAX_BYTES
            && let Ok(burst) = received.try_recv()
        {
            bytes += session.received(&burst);
            packets.extend(burst);
        }
        let (missed, overflowed) = (session.missed(), session.overflowed());
        CaptureProgress { packets, is_full, missed, overflowed }
    }
}

impl Router {
    /// Traces the next packets that match; returns the number of the trace.
    ///
    /// # Errors
    /// The source is no element from which packets come, there are too many traces, or a worker is
    /// gone or stuck.
    pub fn start_trace(&mut self, request: TraceRequest) -> Result<u64, ArgError> {
        let TraceRequest { filter, source, packets, snap_len } = request;
        if let Some(name) = &source
            && !self.sources().any(|it| it == name)
        {
            let error = ArgError::new(format!("no packets come from an element named '{name}'"));
            let near = castanet_lang::nearest(name, self.sources());
            return Err(match near {
                Some(near) => error.help(format!("did you mean '{near}'?")),
                None => {
                    let all: Vec<&str> = self.sources().collect();
                    error.help(format!("packets come from: {}", all.join(", ")))
                }
            });
        }
        let now = self.control.clock.peek();
        let number = self.control.inspections.next(now)?;
        let (sender, steps) = channel();
        let lease = Lease::new(now + LEASE);
        let session = TraceSession::new(filter, source, packets, snap_len, lease, sender);
        let session = ClientSession { number, session: Arc::new(session), received: steps };
        self.control.inspections.traces.push(session);
        self.inspect()?;
        Ok(number)
    }

    /// The steps of a trace since it was read last; extends its lease. A trace whose lease has ended
    /// goes on.
    ///
    /// # Errors
    /// There is no such trace, or a worker is gone or stuck.
    pub fn read_trace(&mut self, number: u64) -> Result<TraceProgress, ArgError> {
        let now = self.control.clock.peek();
        let traces = &self.control.inspections.traces;
        let it = &traces[place(traces, "trace", number)?];
        let was_over = it.session.lease().renew(now, now + LEASE);
        let progress = TraceProgress::of(&it.session, &it.received);
        if was_over {
            self.inspect()?;
        }
        Ok(progress)
    }

    /// Ends a trace; returns the steps since it was read last.
    ///
    /// # Errors
    /// There is no such trace, or a worker is gone or stuck.
    pub fn end_trace(&mut self, number: u64) -> Result<TraceProgress, ArgError> {
        let Inspections { table, traces, .. } = &mut self.control.inspections;
        let it = traces.remove(place(traces, "trace", number)?);
        table.forget(&it.session);
        self.inspect()?;
        let mut progress = TraceProgress::of(&it.session, &it.received);
        progress.lost_steps += it.received.try_iter().count() as u64;
        Ok(progress)
    }

    /// Captures packets from now on; returns the number of the capture.
    ///
    /// # Errors
    /// There is no such place, there are too many captures, or a worker is gone or stuck.
    pub fn start_capture(&mut self, request: CaptureRequest) -> Result<u64, ArgError> {
        let CaptureRequest { filter, places, drops, packets, snap_len } = request;
        if let Some(drops) = &drops {
            self.check_drops(drops)?;
        }
        let named = drops.as_ref().map_or(0, |drops| drops.elements.len());
        if places.len() + named > MAX_PLACES {
            return Err(ArgError::new(format!("a capture has at most {MAX_PLACES} places")));
        }
        let mut points = Vec::new();
        for place in &places {
            for point in self.points(place)? {
                if !points.contains(&point) {
                    points.push(point);
                }
            }
        }
        if points.is_empty() && drops.is_none() {
            points = self.all_ends();
        }
        let now = self.control.clock.peek();
        let number = self.control.inspections.next(now)?;
        let (sender, received) = channel();
        let lease = Lease::new(now + LEASE);
        let session = CaptureSession::new(filter, points, drops, packets, snap_len, lease, sender);
        let session = ClientSession { number, session: Arc::new(session), received };
        self.control.inspections.captures.push(session);
        self.inspect()?;
        Ok(number)
    }

    /// The packets of a capture since it was read last; extends its lease. A capture whose lease has
    /// ended goes on.
    ///
    /// # Errors
    /// There is no such capture, or a worker is gone or stuck.
    pub fn read_capture(&mut self, number: u64) -> Result<CaptureProgress, ArgError> {
        let now = self.control.clock.peek();
        let captures = &self.control.inspections.captures;
        let it = &captures[place(captures, "capture", number)?];
        let was_over = it.session.lease().renew(now, now + LEASE);
        let progress = CaptureProgress::of(&it.session, &it.received);
        if was_over {
            self.inspect()?;
        }
        Ok(progress)
    }

    /// Ends a capture; returns the packets since it was read last.
    ///
    /// # Errors
    /// There is no such capture, or a worker is gone or stuck.
    pub fn end_capture(&mut self, number: u64) -> Result<CaptureProgress, ArgError> {
        let captures = &mut self.control.inspections.captures;
        let it = captures.remove(place(captures, "capture", number)?);
        self.inspect()?;
        let mut progress = CaptureProgress::of(&it.session, &it.received);
        let unread = it.received.try_iter().map(|burst| burst.len() as u64);
        progress.overflowed += unread.sum::<u64>();
        Ok(progress)
    }

    /// Has workers look at the packets that traces and captures are about.
    pub(super) fn inspect(&mut self) -> Result<(), ArgError> {
        let Inspections { table, traces, captures, .. } = &self.control.inspections;
        let traces: Vec<_> = traces.iter().map(|it| it.session.clone()).collect();
        let captures: Vec<_> = captures.iter().map(|it| it.session.clone()).collect();
        let (table, now) = (table.clone(), self.control.clock.peek());
        let all = &self.config.graph.elements;
        let element = |it: &Element| TraceElement {
            name: it.name.clone(),
            class: it.source.class.clone(),
            reasons: reasons(it),
        };
        let elements: Arc<[TraceElement]> = all.iter().map(element).collect();
        let is_captured = |&it: &usize| {
            let points = captures.iter().flat_map(|session| session.points());
            points.into_iter().any(|point| point.element == all[it].name)
        };
        let captured: Vec<usize> = (0..all.len()).filter(is_captured).collect();
        let answers = self.workers.ask_all(move |worker| {
            let index = worker.index;
            let trace = (!traces.is_empty())
                .then(|| WorkerTrace::new(traces, table, elements.clone(), index, now));
            let capture =
                (!captures.is_empty()).then(|| WorkerCapture::new(captures, elements, index, now));
            worker.inspect(trace, capture, &captured);
        });
        answers.into_iter().collect()
    }

    /// The same after a hot swap, if there are traces or captures.
    pub(super) fn inspect_anew(&mut self) {
        if !self.control.inspections.is_empty() {
            // The workers do not run at this time.
            _ = self.inspect();
        }
    }

    /// The names of elements from which packets come.
    fn sources(&self) -> impl Iterator<Item = &str> {
        let elements = self.config.graph.elements.iter();
        elements.filter(|it| it.is_origin()).map(|it| it.name.as_str())
    }

    fn check_element(&self, name: &str) -> Result<(), ArgError> {
        let graph = &self.config.graph;
        graph.find(name).map(|_| ()).ok_or_else(|| no_element(graph, name))
    }

    /// Checks the elements and the reason of drops to capture.
    fn check_drops(&self, drops: &CapturedDrops) -> Result<(), ArgError> {
        drops.elements.iter().try_for_each(|name| self.check_element(name))?;
        let Some(wanted) = &drops.reason else { return Ok(()) };
        let elements = self.config.graph.elements.iter();
        let about =
            elements.filter(|it| drops.elements.is_empty() || drops.elements.contains(&it.name));
        let reasons = about.flat_map(reasons).map(|(_, reason)| reason.name.clone());
        let mut all: Vec<String> = reasons.collect();
        if all.contains(wanted) {
            return Ok(());
        }
        all.sort();
        all.dedup();
        let error = ArgError::new(format!("no packet is dropped there for a reason '{wanted}'"));
        let near = castanet_lang::nearest(wanted, all.iter().map(String::as_str));
        Err(match near {
            Some(near) => error.help(format!("did you mean '{near}'?")),
            None => error.help("`castanet drops` shows reasons by their names"),
        })
    }

    /// The places that a person names.
    fn points(&self, place: &CapturePlaceName) -> Result<Vec<CapturePoint>, ArgError> {
        let CapturePlaceName { name, side, port } = place;
        let elements = &self.config.graph.elements;
        let of_interface = elements.iter().filter(|it| it.interface().as_ref() == Some(name));
        let of_interface: Vec<_> = of_interface.flat_map(ends).collect();
        let Some(it) = elements.iter().find(|it| it.name == *name) else {
            if of_interface.is_empty() {
                self.check_element(name)?;
            }
            return Ok(of_interface);
        };
        let point = |side| CapturePoint { element: name.clone(), side, port: *port };
        if let (Some(side), Some(port)) = (side, port) {
            let (ports, what) = match side {
                CaptureSide::Input => (it.inputs.len(), "input"),
                CaptureSide::Output => (it.outputs.len(), "output"),
            };
            if *port >= ports {
                let plural = if ports == 1 { "" } else { "s" };
                return Err(ArgError::new(format!("'{name}' has {ports} {what}{plural}")));
            }
        }
        Ok(match side {
            Some(side) => vec![point(*side)],
            // Where packets come in; of elements without inputs, where they leave.
            None if it.inputs.is_empty() => vec![point(CaptureSide::Output)],
            None => vec![point(CaptureSide::Input)],
        })
    }

    /// The places where packets enter and leave the graph: its devices, otherwise its sources.
    fn all_ends(&self) -> Vec<CapturePoint> {
        let elements = &self.config.graph.elements;
        let devices = elements.iter().filter(|it| it.interface().is_some());
        let points: Vec<_> = devices.flat_map(ends).collect();
        match points.is_empty() {
            false => points,
            true => elements.iter().filter(|it| it.is_origin()).flat_map(ends).collect(),
        }
    }
}

/// The reasons for which an element loses packets.
fn reasons(it: &Element) -> Vec<(u8, Arc<LossReason>)> {
    it.loss_reasons().map(|(fate, reason)| (fate, Arc::new(reason))).collect()
}

/// Where packets enter or leave the graph at an element.
fn ends(it: &Element) -> Vec<CapturePoint> {
    let point = |side| CapturePoint { element: it.name.clone(), side, port: None };
    let mut points = Vec::new();
    if it.is_origin() {
        points.push(point(CaptureSide::Output));
    }
    if it.outputs.is_empty() || it.class.role == Role::Duplex {
        points.push(point(CaptureSide::Input));
    }
    points
}
