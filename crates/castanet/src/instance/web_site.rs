//! The pages of the web view: the files of the page, and what its script asks for, as JSON.

use super::process_reports::{ReportKind, processes_reported};
use super::service::InstanceService;
use super::site::{no_answer, no_page};
use crate::control_queue::ControlSender;
use crate::http::{Request, Response, refusal, response};
use crate::observe::{log, trace};
use crate::web::{ElementPage, asset, manual_page, read_values, role};
use castanet_element::error::ArgError;
use castanet_runtime::router::Router;
use hyper::StatusCode;
use hyper::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap, HeaderValue, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Where values are changed.
const WRITE: &str = "/api/write";
/// Where packets are traced.
const TRACE: &str = "/api/trace";
/// Restrictions of the page: it loads its own files and nothing else, and no other page contains it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The header by which browsers tell where a request comes from.
const FETCH_SITE: &str = "sec-fetch-site";
/// Lines of the log that one answer has.
const MOST_LINES: usize = 500;
/// Handlers that one request reads.
const MOST_HANDLERS: usize = 64;

/// The web view of a listener.
pub(super) struct WebSite {
    /// Whether clients may write handlers.
    pub(super) may_write: bool,
    /// Whether clients name a token. Those of a listener without one have to name this host by its
    /// address: a name could be anyone's, who lets it mean this host to have a browser ask for him.
    pub(super) has_token: bool,
}

/// A request about a trace.
#[derive(Deserialize)]
#[serde(tag = "command", rename_all = "lowercase")]
enum TraceCommand {
    Start { query: trace::TraceQuery },
    Next { session: u64 },
    Stop { session: u64 },
}

/// A value for a handler.
#[derive(Deserialize)]
struct HandlerWrite {
    handler: String,
    #[serde(default)]
    value: String,
}

impl WebSite {
    /// Whether a path takes the method POST.
    pub(super) fn takes_post(path: &str) -> bool {
        [WRITE, TRACE].contains(&path)
    }

    /// Answers a request.
    pub(super) async fn reply(
        &self,
        control: &ControlSender<InstanceService>,
        request: Request,
    ) -> Response {
        let path = request.head.uri.path();
        match asset(path) {
            Some(asset) => response(asset.content_type, asset.text),
            None if !path.starts_with("/api/") => no_page(),
            None => self.answer(control, &request).await,
        }
    }

    /// The refusal of a request that is not from the page of this instance, if it is such a request.
    pub(super) fn foreign_refusal(&self, request: &Request) -> Option<Response> {
        if asset(request.head.uri.path()).is_some() {
            return None;
        }
        let sentence = self.objection(&request.head.headers)?;
        Some(refusal(StatusCode::FORBIDDEN, sentence))
    }

    /// Restricts what browsers do with an answer.
    pub(super) fn restrict(mut response: Response) -> Response {
        let headers = response.headers_mut();
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        response
    }

    /// Why a request is not from the page of this instance, if it is not.
    fn objection(&self, headers: &HeaderMap) -> Option<&'static str> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        if !self.has_token && !is_address(host) {
            return Some(
                "without --web-token, this host has to be named by its address, or as localhost",
            );
        }
        let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
        // Browsers tell the first of requests without scripts, too: of images, links, forms.
        let site = headers.get(FETCH_SITE).map(text);
        let is_foreign = site.is_some_and(|site| !["same-origin", "none"].contains(&site.as_str()));
        let is_own = |origin: String| origin.split_once("://").is_some_and(|(_, own)| own == host);
        let is_foreign = is_foreign || !headers.get(ORIGIN).map(text).is_none_or(is_own);
        is_foreign.then_some("the request comes from the page of another site")
    }

    async fn answer(
        &self,
        control: &ControlSender<InstanceService>,
        request: &Request,
    ) -> Response {
        let query = Query::of(request);
        let may_write = self.may_write;
        match request.head.uri.path() {
            "/api/instance" => {
                ask(control, move |service, router| Ok(service.web_description(router, may_write)))
                    .await
            }
            "/api/graph" => ask(control, |service, router| Ok(service.graph(router))).await,
            "/api/live" => match control.ask(InstanceService::live).await {
                Some(Ok(live)) => json(live.as_deref()),
                Some(Err(error)) => refused(&error),
                None => no_answer(),
            },
            "/api/history" => {
                let element = query.first("element");
                ask(control, move |service, _| Ok(service.history(&element))).await
            }
            "/api/element" => {
                let name = query.first("name");
                ask(control, move |_, router| ElementPage::of(router, &name)).await
            }
            "/api/read" => {
                let handlers = query.all("handler", MOST_HANDLERS);
                ask(control, move |_, router| Ok(read_values(router, &handlers, may_write))).await
            }
            "/api/manual" => match manual_page(&query.first("class")) {
                Some(page) => response("text/html; charset=utf-8", page),
                None => no_page(),
            },
            "/api/drops" => match processes_reported(control, ReportKind::Drops).await {
                true => ask(control, |service, router| service.drops(router)).await,
                false => no_answer(),
            },
            "/api/log" => {
                let after = query.first("after").parse().unwrap_or(0);
                ask(control, move |_, _| Ok(log::lines(after, MOST_LINES))).await
            }
            TRACE => match body::<TraceCommand>(request) {
                Ok(command) => trace_packets(control, command).await,
                Err(refusal) => *refusal,
            },
            WRITE if !may_write => {
                refusal(StatusCode::FORBIDDEN, "values are changed only under --web-write")
            }
            WRITE => match body::<HandlerWrite>(request) {
                Ok(write) => ask(control, move |_, router| write.execute(router)).await,
                Err(refusal) => *refusal,
            },
            _ => no_page(),
        }
    }
}

impl HandlerWrite {
    fn execute(&self, router: &mut Router) -> Result<(), ArgError> {
        // The router's own handlers replace its configuration and end it: they are for its control socket.
        let is_there =
            role(router, &self.handler).is_some() && router.has_handler(&self.handler, true);
        match is_there {
            true => router.write(&self.handler, &self.value),
            false => {
                let sentence = format!("no element has the write handler '{}'", self.handler);
                Err(ArgError::new(sentence))
            }
        }
    }
}

/// Executes a command about a trace; its answer is JSON already.
async fn trace_packets(
    control: &ControlSender<InstanceService>,
    command: TraceCommand,
) -> Response {
    let command = match command {
        TraceCommand::Start { query } => {
            format!("start {}", serde_json::to_string(&query).unwrap_or_default())
        }
        TraceCommand::Next { session } => format!("next {session}"),
        TraceCommand::Stop { session } => format!("stop {session}"),
    };
    let answer = control.ask(move |_, router| trace::command(router, &command)).await;
    match answer {
        Some(Ok(json)) => response("application/json", json),
        Some(Err(error)) => refused(&error),
        None => no_answer(),
    }
}

/// Has the control thread make a value, and answers with it as JSON.
async fn ask<T: Serialize + Send + 'static>(
    control: &ControlSender<InstanceService>,
    request: impl FnOnce(&mut InstanceService, &mut Router) -> Result<T, ArgError> + Send + 'static,
) -> Response {
    match control.ask(request).await {
        Some(Ok(value)) => json(value),
        Some(Err(error)) => refused(&error),
        None => no_answer(),
    }
}

/// A value as JSON, which is made off the control thread.
fn json(value: impl Serialize) -> Response {
    match serde_json::to_string(&value) {
        Ok(json) => response("application/json", json),
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// The answer to a request that the router refuses.
fn refused(error: &ArgError) -> Response {
    refusal(StatusCode::BAD_REQUEST, &error.to_string())
}

/// The body of a request, which is JSON.
fn body<'a, T: Deserialize<'a>>(request: &'a Request) -> Result<T, Box<Response>> {
    let kind = request.head.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    // Pages of other sites cannot send this type without leave.
    if kind.is_none_or(|kind| !kind.starts_with("application/json")) {
        let sentence = "the body of a request is of the type application/json";
        return Err(Box::new(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence)));
    }
    serde_json::from_slice(&request.body)
        .map_err(|error| Box::new(refusal(StatusCode::BAD_REQUEST, &format!("the body: {error}"))))
}

/// Whether a header `Host` names an address, and not a name that somebody else may give away.
fn is_address(host: &str) -> bool {
    let host = match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    };
    let address = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// The part of an address behind the question mark.
struct Query(Vec<(String, String)>);

impl Query {
    fn of(request: &Request) -> Query {
        let text = request.head.uri.query().unwrap_or_default();
        Query(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    /// The first value of a name; empty if there is none.
    fn first(&self, name: &str) -> String {
        self.all(name, 1).pop().unwrap_or_default()
    }

    /// So many values of a name at most.
    fn all(&self, name: &str, most: usize) -> Vec<String> {
        let its = self.0.iter().filter(|(own, _)| own == name);
        its.map(|(_, value)| value.clone()).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_name_a_host_without_a_token() {
        for host in
            ["127.0.0.1:8080", "127.0.0.1", "[::1]:8080", "[::1]", "localhost:80", "LOCALHOST"]
        {
            assert!(is_address(host), "{host}");
        }
        for host in ["", "example.org", "example.org:8080", "localhost.example.org", ":80", "[x]"] {
            assert!(!is_address(host), "{host}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_found() {
        let objects = |has_token, host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            origin.map(|it| headers.insert(ORIGIN, HeaderValue::from_static(it)));
            WebSite { may_write: true, has_token }.objection(&headers).is_some()
        };
        assert!(!objects(false, "127.0.0.1:80", None));
        assert!(!objects(false, "127.0.0.1:80", Some("http://127.0.0.1:80")));
        assert!(objects(false, "evil.example", None));
        assert!(objects(false, "127.0.0.1:80", Some("http://evil.example")));
        assert!(objects(false, "127.0.0.1:80", Some("null")));
        assert!(!objects(true, "router.example", Some("https://router.example")));
        assert!(objects(true, "router.example", Some("https://evil.example")));
    }
}
