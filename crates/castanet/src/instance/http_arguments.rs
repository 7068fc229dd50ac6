//! Arguments about the HTTP clients of an instance, and their listeners.

use crate::commands::CommandError;
use crate::http::{BearerToken, HttpListener};
use clap::Args;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Arguments about the HTTP clients of an instance.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct HttpArguments {
    /// Show the router in a browser, at this address, IP:PORT, or at this port of the loopback interface;
    /// port 0 chooses one. Metrics are there, too, at /metrics
    #[arg(long, value_name = "ADDR", value_parser = HttpListener::parse)]
    web: Option<SocketAddr>,
    /// Show the router only to clients that name the bearer token in this file; needed for an address that
    /// other hosts reach
    #[arg(long, value_name = "FILE", requires = "web")]
    web_token: Option<PathBuf>,
    /// Let the page write handlers. Without --web-token, a token is chosen at the start and printed
    #[arg(long, requires = "web")]
    web_write: bool,
    /// Answer Prometheus at this address, IP:PORT, or at this port of the loopback interface; port 0
    /// chooses one
    #[arg(long, value_name = "ADDR", value_parser = HttpListener::parse)]
    metrics: Option<SocketAddr>,
    /// Answer only clients that name the bearer token in this file; needed for an address that other
    /// hosts reach
    #[arg(long, value_name = "FILE", requires = "metrics")]
    metrics_token: Option<PathBuf>,
}

/// A socket for HTTP clients, and what they have to name.
pub(crate) struct HttpAccess {
    pub(super) listener: HttpListener,
    pub(super) token: Option<BearerToken>,
    /// The web view, if clients find it there.
    pub(super) web: Option<WebAccess>,
}

/// Rights of the clients of a web view.
#[derive(Clone)]
pub(crate) struct WebAccess {
    /// Whether they may write handlers.
    pub(super) may_write: bool,
    /// The token that was chosen at the start, for the address that is printed.
    pub(super) random_token: Option<String>,
}

impl HttpArguments {
    /// The option of a listener that the user wants, if there is one.
    pub(crate) fn wanted(&self) -> Option<&'static str> {
        let metrics = self.metrics.map(|_| "--metrics");
        self.web.map(|_| "--web").or(metrics)
    }

    /// Listens for HTTP clients, if there are to be any, before anything else is opened.
    ///
    /// # Errors
    /// An address is in use, or other hosts reach it and there is no token.
    pub(crate) fn listen(&self) -> Result<Vec<HttpAccess>, CommandError> {
        let web = self.web.map(|address| self.listen_for_web(address)).transpose()?;
        let is_same = self.web.is_some_and(|it| it.port() != 0) && self.web == self.metrics;
        if is_same && self.metrics_token.is_some() {
            return Err(CommandError::usage(
                "--metrics-token: the metrics have the address of the web view, and so its --web-token"
                    .into(),
            ));
        }
        let metrics = self.metrics.filter(|_| !is_same).map(|address| {
            let token = self.metrics_token.as_deref();
            access("--metrics", address, token)
        });
        Ok(web.into_iter().chain(metrics.transpose()?).collect())
    }

    fn listen_for_web(&self, address: SocketAddr) -> Result<HttpAccess, CommandError> {
        let mut access = access("--web", address, self.web_token.as_deref())?;
        let mut web = WebAccess { may_write: self.web_write, random_token: None };
        // Every user of this host reaches the loopback interface.
        if self.web_write && access.token.is_none() {
            let (token, text) = BearerToken::random()?;
            (access.token, web.random_token) = (Some(token), Some(text));
        }
        access.web = Some(web);
        Ok(access)
    }
}

/// Listens at an address that an option names, for clients that name the token in a file.
fn access(
    option: &str,
    address: SocketAddr,
    token: Option<&Path>,
) -> Result<HttpAccess, CommandError> {
    if !address.ip().to_canonical().is_loopback() && token.is_none() {
        return Err(CommandError::usage(format!(
            "{option} {address}: other hosts reach this address, so it takes a bearer token, too: \
             {option}-token FILE"
        )));
    }
    let token = token.map(BearerToken::read).transpose();
    let token = token.map_err(|error| format!("{option}-token {error}"))?;
    let listener = HttpListener::open(address);
    let listener = listener.map_err(|error| format!("{option} {error}"))?;
    Ok(HttpAccess { listener, token, web: None })
}
