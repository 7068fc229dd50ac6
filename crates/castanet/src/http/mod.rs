//! The HTTP listener of an instance: one thread of its own, never a worker; clients that are slow make room for
//! others.

mod address;
mod clients;
mod server;
mod token;

pub(crate) use address::HttpListener;
pub(crate) use server::{HttpServer, Reply, Request, Response, Site, refusal, response};
pub(crate) use token::BearerToken;
