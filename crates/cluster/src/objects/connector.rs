//! The HTTP of object storage: this program's TLS, and the proxies that the environment names.

use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::Error;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpService,
};
use reqwest::{Client, Url};

/// How long a connection, and one request, may take.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(60);

/// Makes the client for a service at an address; that of the vendor, if it is empty.
#[derive(Debug)]
pub(super) struct Connector(pub(super) String);

#[derive(Debug)]
struct Service(Client);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        // An error means that one is installed already, which works as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .redirect(reqwest::redirect::Policy::none());
        if self.0.starts_with("http://") {
            // No certificates are needed, and reading those of the system takes time.
            builder = builder.tls_certs_only([]);
        }
        let client = myclaw_proxy::to_server(builder, &self.0).build();
        let client = client
            .map_err(|error| Error::Generic { store: "object storage", source: error.into() })?;
        Ok(HttpClient::new(Service(client)))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut asked = reqwest::Request::new(parts.method, url);
        *asked.headers_mut() = parts.headers;
        *asked.body_mut() = Some(body.collect().await?.to_bytes().into());
        let response = self.0.execute(asked).await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut answer = HttpResponse::new(response.bytes().await.map_err(failed)?.into());
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }
}

fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        HttpErrorKind::Interrupted
    };
    HttpError::new(kind, error)
}
