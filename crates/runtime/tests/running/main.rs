//! Graphs of small elements, run in simulated time and on real threads: what
//! goes in comes out or is counted, nothing sleeps through its wake-up, and a
//! bug in an element costs a burst.
#![allow(clippy::unwrap_used)] // a test

mod bed;
mod calls;
mod circles;
mod deferred;
mod devices;
mod drops;
mod elements;
mod faults;
mod fused;
mod lent_bytes;
mod moving;
mod probes;
mod queues;
mod replaced;
mod straight;
mod turns;
mod waking;
