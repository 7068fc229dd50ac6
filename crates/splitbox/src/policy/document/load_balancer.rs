//! Load balancers: a service's packets go to backends by the hash of their source.

use super::endpoint::{Endpoint, Side};
use super::nat::Direction;
use super::{Protocol, Rest, Translation};
use crate::header::SOURCE_HASH;
use crate::policy::PolicyError;
use crate::policy::stage::{Effect, Entry};
use serde::Deserialize;
use toml::Spanned;

/// The table `load_balancer`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoadBalancer {
    /// Requests to the service if nothing is said, or replies of the backends.
    #[serde(default)]
    direction: Direction,
    service: Spanned<String>,
    protocol: Option<Protocol>,
    buckets: Spanned<u32>,
    rest: Rest,
    backend: Vec<Spanned<Backend>>,
}

/// A backend.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Backend {
    address: Spanned<String>,
    #[serde(default = "one")]
    weight: u32,
}

fn one() -> u32 {
    1
}

/// Maximum of log2 of the number of buckets.
const MAX_BUCKET_BITS: u32 = 12;

/// A run of buckets with one prefix: its first bucket, and log2 of its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) backend: usize,
    pub(super) first: u32,
    pub(super) size_bits: u32,
}

impl LoadBalancer {
    /// The entries of the backends, the rest, and the place of the rest.
    ///
    /// # Errors
    /// All values that are wrong.
    pub(super) fn entries(&self) -> Translation {
        let mut errors = Vec::new();
        let service = Endpoint::parse(&self.service).and_then(|it| self.check_service(it));
        let service = service.map_err(|error| errors.push(error)).ok();
        let mut backends = Vec::new();
        for backend in &self.backend {
            match Endpoint::parse(&backend.get_ref().address) {
                Ok(it) => {
                    let error = service.and_then(|service| backend_error(backend, &it, &service));
                    errors.extend(error);
                    backends.push(it);
                }
                Err(error) => errors.push(error),
            }
        }
        let bits = self.bucket_bits().map_err(|error| errors.push(error)).ok();
        let (Some(service), Some(bits), true) = (service, bits, errors.is_empty()) else {
            return Err(errors);
        };
        if self.direction == Direction::Outbound {
            return Ok((self.replies(&service, &backends), self.rest, self.service.span()));
        }
        let weights: Vec<u32> = self.backend.iter().map(|it| it.get_ref().weight).collect();
        let packets = service.condition(Side::Destination, self.protocol);
        let entry = |run: Run| {
            let prefix = u128::from(run.first >> run.size_bits);
            let length = (bits - run.size_bits) as usize;
            let action = backends[run.backend].action(Side::Destination);
            Entry {
                condition: packets.with(SOURCE_HASH.at, length, prefix),
                effect: Effect::Set(action, 0),
                range: self.backend[run.backend].span(),
            }
        };
        let entries = runs(&shares(&weights, 1 << bits)).into_iter().map(entry).collect();
        Ok((entries, self.rest, self.service.span()))
    }

    /// The entries of replies, which get the source that requests went to.
    fn replies(&self, service: &Endpoint, backends: &[Endpoint]) -> Vec<Entry> {
        let entry = |(backend, range): (&Endpoint, &Spanned<Backend>)| {
            let from = Endpoint { port: backend.port.or(service.port), ..*backend };
            // A port that requests keep is not restored either.
            let to = Endpoint { port: backend.port.and(service.port), ..*service };
            Entry {
                condition: from.condition(Side::Source, self.protocol),
                effect: Effect::Set(to.action(Side::Source), 0),
                range: range.span(),
            }
        };
        backends.iter().zip(&self.backend).map(entry).collect()
    }

    fn check_service(&self, service: Endpoint) -> Result<Endpoint, PolicyError> {
        let error = |message: &str, help: &str| {
            Err(PolicyError::new(self.service.span(), message).help(help))
        };
        match (service.port, self.protocol) {
            _ if !is_address(&service) => error("the service is a prefix", "it is one address"),
            (Some(_), None) => {
                error("a port without a protocol", "write `protocol = \"tcp\"` or \"udp\"")
            }
            _ => Ok(service),
        }
    }

    /// log2 of the number of buckets.
    fn bucket_bits(&self) -> Result<u32, PolicyError> {
        let (buckets, max) = (*self.buckets.get_ref(), 1_u32 << MAX_BUCKET_BITS);
        let error = |message: String| PolicyError::new(self.buckets.span(), message);
        let used = self.backend.iter().filter(|it| it.get_ref().weight > 0).count();
        if !buckets.is_power_of_two() || buckets > max {
            return Err(error(format!("{buckets} buckets: it is a power of two, at most {max}")));
        }
        if used == 0 {
            return Err(error("no backend has a weight".into()).help("at least one is more than 0"));
        }
        if used as u64 > u64::from(buckets) {
            let help = format!("{} are enough", used.next_power_of_two());
            return Err(error(format!("{buckets} buckets for {used} backends")).help(help));
        }
        Ok(buckets.ilog2())
    }
}

/// Whether an endpoint is one address.
fn is_address(endpoint: &Endpoint) -> bool {
    endpoint.length == if endpoint.is_ip6 { 128 } else { 32 }
}

fn backend_error(
    backend: &Spanned<Backend>,
    endpoint: &Endpoint,
    service: &Endpoint,
) -> Option<PolicyError> {
    let (message, help) = if endpoint.is_ip6 != service.is_ip6 {
        ("the backend is of another family than the service", "IPv4 or IPv6, both")
    } else if !is_address(endpoint) {
        ("the backend is a prefix", "it is one address")
    } else if endpoint.port.is_some() && service.port.is_none() {
        (
            "the backend has a port, and the service has none",
            "both have a port, or the service alone",
        )
    } else {
        return None;
    };
    Some(PolicyError::new(backend.get_ref().address.span(), message).help(help))
}

/// The number of buckets of each backend, in proportion to the weights up to one bucket (method of the
/// largest remainder); a backend with a weight has at least one.
pub(super) fn shares(weights: &[u32], buckets: u32) -> Vec<u32> {
    let total: u64 = weights.iter().map(|&it| u64::from(it)).sum();
    let exact = |weight: u32| u64::from(weight) * u64::from(buckets);
    let least = |&weight: &u32| ((exact(weight) / total.max(1)) as u32).max(u32::from(weight > 0));
    let mut shares: Vec<u32> = weights.iter().map(least).collect();
    // The difference of a backend's exact part and its share, in parts of `total`.
    let lack =
        |at: usize, share: u32| exact(weights[at]) as i128 - i128::from(share) * i128::from(total);
    while shares.iter().sum::<u32>() < buckets {
        let most = (0..shares.len()).filter(|&at| weights[at] > 0);
        let Some(at) = most.min_by_key(|&at| -lack(at, shares[at])) else { break };
        shares[at] += 1;
    }
    while shares.iter().sum::<u32>() > buckets {
        let least = (0..shares.len()).filter(|&at| shares[at] > 1);
        let Some(at) = least.min_by_key(|&at| lack(at, shares[at])) else { break };
        shares[at] -= 1;
    }
    shares
}

/// The buckets as the fewest prefixes: a run for each bit of each share, long runs first, so that each
/// begins at a multiple of its length.
pub(super) fn runs(shares: &[u32]) -> Vec<Run> {
    let mut next = 0;
    let mut runs = Vec::new();
    for size_bits in (0..=MAX_BUCKET_BITS).rev() {
        for (backend, share) in shares.iter().enumerate() {
            if share >> size_bits & 1 == 1 {
                runs.push(Run { backend, first: next, size_bits });
                next += 1 << size_bits;
            }
        }
    }
    runs
}
