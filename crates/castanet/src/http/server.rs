//! The HTTP server: its thread, and the bounds of its clients.

use super::address::HttpListener;
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
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;
use tokio_io_timeout::TimeoutStream;

/// Clients at a time; others wait until one has gone.
const MOST_CLIENTS: usize = 64;
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
/// Time after which a connection is closed, whatever its client does.
const LONGEST: Duration = Duration::from_secs(120);
/// Pause after the system has refused to accept a client, for lack of descriptors for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

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
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept(socket, Arc::new(token), site) => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("castanet-http".into());
        thread.spawn(serve).map_err(failed)?;
        Ok(HttpServer { address, _stop })
    }
}

/// Accepts clients, while there are not too many.
async fn accept(socket: TcpListener, token: Arc<Option<BearerToken>>, site: Arc<impl Site>) {
    let places = Arc::new(Semaphore::new(MOST_CLIENTS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                let (token, site) = (token.clone(), site.clone());
                tokio::spawn(async move {
                    _ = timeout(LONGEST, serve(stream, token, site)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers the requests of one client.
async fn serve(stream: TcpStream, token: Arc<Option<BearerToken>>, site: Arc<impl Site>) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME));
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (token, site) = (token.clone(), site.clone());
        async move { Ok::<_, Infallible>(answer(request, token.as_ref().as_ref(), site).await) }
    });
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    server.max_buf_size(MOST_HEAD).max_headers(MOST_HEADERS);
    // The fault of a client is no event of the router.
    _ = server.serve_connection(TokioIo::new(Box::pin(stream)), service).await;
}

/// Answers a request, if it is one that can be answered.
async fn answer(
    request: hyper::Request<Incoming>,
    token: Option<&BearerToken>,
    site: Arc<impl Site>,
) -> Response {
    let path = request.uri().path();
    if token.is_some_and(|token| !site.is_public(path) && !token.is_in(request.headers())) {
        let mut refusal = refusal(StatusCode::UNAUTHORIZED, "a bearer token is wanted");
        refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return refusal;
    }
    let is_post = request.method() == Method::POST;
    let is_get = [Method::GET, Method::HEAD].contains(request.method());
    let takes_post = site.takes_post(path);
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
    match timeout(BODY_TIME, Limited::new(body, MOST_BODY).collect()).await {
        Ok(Ok(body)) => site.reply(Request { head, body: body.to_bytes() }).await,
        Ok(Err(_)) => {
            let sentence = format!("the body of a request has at most {MOST_BODY} bytes");
            refusal(StatusCode::PAYLOAD_TOO_LARGE, &sentence)
        }
        Err(_) => refusal(StatusCode::REQUEST_TIMEOUT, "the body of the request has not come"),
    }
}

/// An answer with a text.
pub(crate) fn response(content_type: &'static str, text: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Full::new(text.into()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An answer that there is none, after which the connection is closed.
pub(crate) fn refusal(status: StatusCode, why: &str) -> Response {
    let mut response = response("text/plain; charset=utf-8", format!("{why}\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
