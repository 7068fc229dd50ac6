//! The pages that an instance answers HTTP clients with.

use super::process_reports::{ReportKind, processes_reported};
use super::service::InstanceService;
use super::web_site::WebSite;
use crate::control_queue::ControlSender;
use crate::http::{Reply, Request, Response, Site, refusal, response};
use crate::metrics::{Format, MetricsReport};
use castanet_element::error::ArgError;
use hyper::StatusCode;
use hyper::header::{ACCEPT, HeaderValue, VARY};
use hyper::http::request::Parts;
use std::sync::Arc;

/// The page of the metrics.
pub(super) const METRICS: &str = "/metrics";

/// Text of the first page, where there is no web view.
const FIRST_PAGE: &str = "castanet\n/metrics: metrics for Prometheus\n";

/// The pages of one listener.
pub(super) struct InstanceSite {
    pub(super) control: ControlSender<InstanceService>,
    /// The web view, if this listener has it.
    pub(super) web: Option<WebSite>,
}

impl Site for InstanceSite {
    fn is_public(&self, path: &str) -> bool {
        self.web.is_some() && crate::web::asset(path).is_some()
    }

    fn takes_post(&self, path: &str) -> bool {
        self.web.is_some() && WebSite::takes_post(path)
    }

    fn reply(self: Arc<Self>, request: Request) -> Reply {
        Box::pin(async move {
            let Some(web) = &self.web else {
                return match request.head.uri.path() {
                    METRICS => self.metrics(&request.head).await,
                    "/" => response("text/plain; charset=utf-8", FIRST_PAGE),
                    _ => no_page(),
                };
            };
            WebSite::restrict(match web.foreign_refusal(&request) {
                Some(refusal) => refusal,
                None if request.head.uri.path() == METRICS => self.metrics(&request.head).await,
                None => web.reply(&self.control, request).await,
            })
        })
    }
}

impl InstanceSite {
    async fn metrics(&self, request: &Parts) -> Response {
        let accepted = request.headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok());
        let format = Format::accepted(&accepted.collect::<Vec<_>>().join(","));
        if !processes_reported(&self.control, ReportKind::Totals).await {
            return no_answer();
        }
        let report: Option<Result<Arc<MetricsReport>, ArgError>> =
            self.control.ask(InstanceService::metrics).await;
        match report {
            Some(Ok(report)) => {
                let mut response = response(format.content_type(), report.text(format));
                response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
                response
            }
            Some(Err(error)) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            None => no_answer(),
        }
    }
}

/// The answer where there is no page.
pub(super) fn no_page() -> Response {
    refusal(StatusCode::NOT_FOUND, "there is no such page")
}

/// The answer while the control thread is busy or waits for a worker that is stuck.
pub(super) fn no_answer() -> Response {
    refusal(StatusCode::SERVICE_UNAVAILABLE, "the router does not answer in time")
}
