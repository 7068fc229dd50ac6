//! SplitBox: network functions whose policy the middleboxes that compute them cannot read
//! (SUPERFLUIDITY I5.1, section 3).
//!
//! An *entry* A blinds the header string of each packet and sends it to t ≥ 2 *processors* B(1..t)
//! and to the *client* C. Processors compare it with hashed matches and add up their shares of the
//! actions; the client puts the shares together and applies the result. Neither the entry nor fewer
//! than t processors learn matches or actions.

#![forbid(unsafe_code)]

pub mod bits;
pub mod counter;
pub mod datagram;
pub mod digest;
pub mod elements;
pub mod epoch;
pub mod epochs;
pub mod function;
mod fuzz;
pub mod header;
pub mod merge_window;
pub mod party;
pub mod party_file;
pub mod policy;
pub mod private;
pub mod random;
pub mod replay;
pub mod report;
pub mod secret;
pub mod setup;
pub mod share;

pub use elements::CLASSES;
pub use fuzz::fuzz_entry;
