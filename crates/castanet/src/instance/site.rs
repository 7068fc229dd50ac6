//! The pages that an instance answers HTTP clients with.

use super::service::InstanceService;
use crate::http::{ControlSender, Reply, Request, Response, Site, refusal, response};
use crate::metrics::{Format, MetricsReport};
use castanet_element::error::ArgError;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderValue, VARY};
use std::sync::Arc;

/// The page of the metrics.
pub(super) const METRICS: &str = "/metrics";

/// Text of the first page.
const FIRST_PAGE: &str = "castanet\n/metrics: metrics for Prometheus\n";

/// The pages of an instance.
pub(super) struct InstanceSite {
    pub(super) control: ControlSender<InstanceService>,
}

impl Site for InstanceSite {
    fn reply(self: Arc<Self>, request: Request) -> Reply {
        Box::pin(async move {
            match request.uri.path() {
                METRICS => self.metrics(&request).await,
                "/" => response("text/plain; charset=utf-8", FIRST_PAGE),
                _ => refusal(StatusCode::NOT_FOUND, "there is no such page"),
            }
        })
    }
}

impl InstanceSite {
    async fn metrics(&self, request: &Request) -> Response {
        let accepted = request.headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let format = Format::accepted(&accepted.collect::<Vec<_>>().join(","));
        let report: Option<Result<Arc<MetricsReport>, ArgError>> =
            self.control.ask(InstanceService::metrics).await;
        match report {
            Some(Ok(report)) => {
                let mut response = response(format.content_type(), report.text(format));
                response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
                response
            }
            Some(Err(error)) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            None => refusal(StatusCode::SERVICE_UNAVAILABLE, "the router does not answer in time"),
        }
    }
}
