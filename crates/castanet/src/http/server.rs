//! The HTTP server: its thread, and the bounds of its clients.

use super::address::HttpListener;
use super::clients::Clients;
use super::token::BearerToken;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

/// Bytes of the line and the headers of a request.
const MOST_HEAD: usize = 16 * 1024;
/// Headers of a request.
const MOST_HEADERS: usize = 64;
/// Time in which a client has to send the head of its next request.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Bytes of the body of a request.
const MOST_BODY: usize = 64 * 1024;
/// Time in which a client has to send the body of a request.
const BODY_TIME: Duration = Duration::from_secs(5);
/// Time for which a client may take no byte of an answer.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// Time after which a connection takes no further request, whatever its client does.
const CONNECTION_TIME: Duration = Duration::from_secs(120);
/// Time for the answer to the last request of a connection.
const LAST_TIME: Duration = Duration::from_secs(15);
/// Pause while there is no room for a client, or after the system has refused to accept one, for lack of
/// descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// A request.
pub(crate) struct Request {
    /// Its line and its headers.
    pub(crate) head: Parts,
    /// Its body, which only a request of the method POST has.
    pub(crate) body: Bytes,
}

/// An answer.
pub(crate) type Response = hyper::Response<Full<Bytes>>;
/// An answer to come.
pub(crate) type Reply = Pin<Box<dyn Future<Output = Response> + Send>>;

/// The pages of a server.
pub(crate) trait Site: Send + Sync + 'static {
    /// Whether clients without the token get what is at this path: texts that every instance has.
    fn is_public(&self, path: &str) -> bool;

    /// Whether the path takes requests of the method POST, and no other.
    fn takes_post(&self, path: &str) -> bool;

    /// Answers a request of the method GET or HEAD, or POST where the path takes it. The server leaves out
    /// the body of an answer to HEAD.
    fn reply(self: Arc<Self>, request: Request) -> Reply;
}

/// A server, until it is dropped.
pub(crate) struct HttpServer {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// Dropped to end the thread.
    _stop: oneshot::Sender<()>,
}

impl HttpServer {
    /// Answers the clients of a socket on a thread of its own.
    ///
    /// # Errors
    /// There can be no thread.
    pub(crate) fn start(
        listener: HttpListener,
        token: Option<BearerToken>,
        site: Arc<impl Site>,
    ) -> Result<HttpServer, String> {
        let failed = |error: std::io::Error| format!("cannot answer HTTP: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(failed)?;
        let (_stop, stopped) = oneshot::channel();
        let HttpListener { socket, address } = listener;
        let socket = {
            let _context = runtime.enter();
            TcpListener::from_std(socket).map_err(failed)?
        };
        let state = Arc::new(SiteState { site, token, clients: Clients::default() });
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(socket, state) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("castanet-http".into());
        thread.spawn(serve).map_err(failed)?;
        Ok(HttpServer { address, _stop })
    }
}

/// Pages, the token that opens them, and the clients that look at them.
struct SiteState<S> {
    site: Arc<S>,
    token: Option<BearerToken>,
    clients: Clients,
}

/// Accepts clients.
async fn accept<S: Site>(socket: TcpListener, state: Arc<SiteState<S>>) {
    loop {
        while !state.clients.make_room() {
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
        match socket.accept().await {
            Ok((stream, _)) => {
                let number = state.clients.next();
                let its = state.clone();
                let task = tokio::spawn(async move {
                    serve(stream, number, &its).await;
                    its.clients.remove(number);
                });
                // The task runs only when this one waits: it is in the list before it can leave it.
                state.clients.add(number, task.abort_handle());
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of one client.
async fn serve<S: Site>(stream: TcpStream, number: u64, state: &Arc<SiteState<S>>) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME));
    let state = state.clone();
    let answer = service_fn(move |request: hyper::Request<Incoming>| {
        let state = state.clone();
        async move { Ok::<_, Infallible>(state.answer(request, number).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    server.max_buf_size(MOST_HEAD).max_headers(MOST_HEADERS);
    let mut connection = pin!(server.serve_connection(TokioIo::new(Box::pin(stream)), answer));
    // The fault of a client is no event of the router.
    if timeout(CONNECTION_TIME, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        _ = timeout(LAST_TIME, connection).await;
    }
}

impl<S: Site> SiteState<S> {
    /// Answers a request, if it is one that can be answered.
    async fn answer(&self, request: hyper::Request<Incoming>, client: u64) -> Response {
        let path = request.uri().path();
        let may_ask = self.token.as_ref().is_none_or(|token| token.is_in(request.headers()));
        if !may_ask && !self.site.is_public(path) {
            let mut refusal = refusal(StatusCode::UNAUTHORIZED, "a bearer token is wanted");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return refusal;
        }
        let is_post = request.method() == Method::POST;
        let is_get = [Method::GET, Method::HEAD].contains(request.method());
        let takes_post = self.site.takes_post(path);
        if !(is_post && takes_post || is_get && !takes_post) {
            let (allowed, sentence) = match takes_post {
                true => ("POST", "only POST is answered here"),
                false => ("GET, HEAD", "only GET and HEAD are answered"),
            };
            let mut refusal = refusal(StatusCode::METHOD_NOT_ALLOWED, sentence);
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
            return refusal;
        }
        if is_get && !request.body().is_end_stream() {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "a request has no body here");
        }
        let (head, body) = request.into_parts();
        let body = match body_of(body).await {
            Ok(body) => body,
            Err(refusal) => return *refusal,
        };
        // Files that are for everybody give no right to a place.
        if !may_ask {
            return self.site.clone().reply(Request { head, body }).await;
        }
        self.clients.set_answered(client, true);
        let reply = self.site.clone().reply(Request { head, body }).await;
        self.clients.set_answered(client, false);
        reply
    }
}

/// Receives the body of a request.
async fn body_of(body: Incoming) -> Result<Bytes, Box<Response>> {
    let (status, sentence) = match timeout(BODY_TIME, Limited::new(body, MOST_BODY).collect()).await
    {
        Ok(Ok(body)) => return Ok(body.to_bytes()),
        Ok(Err(_)) => {
            let sentence = format!("the body of a request has at most {MOST_BODY} bytes");
            (StatusCode::PAYLOAD_TOO_LARGE, sentence)
        }
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the body of the request has not come".to_owned()),
    };
    Err(Box::new(refusal(status, &sentence)))
}

/// An answer with a text.
pub(crate) fn response(content_type: &'static str, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(text.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A refusal with its reason, after which the connection is closed.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    let mut response = response("text/plain; charset=utf-8", format!("{why}\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
