//! The page: files embedded at build time, and how each may be cached.

use axum::{
    body::Body,
    http::{HeaderValue, Method, Response, StatusCode, Uri, header},
    response::IntoResponse,
};
use rust_embed::RustEmbed;

/// What the page's build left in `page/`; only the placeholder is committed.
#[derive(RustEmbed)]
#[folder = "page/"]
struct Files;

/// Served instead of `index.html` where the page was not built.
const PLACEHOLDER: &str = "placeholder.html";
/// Files in here carry a hash of their content in their name.
const HASHED: &str = "assets/";

/// Whether the real page is embedded.
pub(crate) fn is_built() -> bool {
    Files::get("index.html").is_some()
}

/// Answers every path that is no API: a file, the page for its own routes, or a real 404.
pub(crate) async fn serve(method: Method, uri: Uri) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    match lookup(path) {
        Some((name, file)) => respond(name, file),
        None => (StatusCode::NOT_FOUND, "There is nothing here.\n").into_response(),
    }
}

fn lookup(path: &str) -> Option<(&str, rust_embed::EmbeddedFile)> {
    if let Some(file) = Files::get(path).filter(|_| path != PLACEHOLDER) {
        return Some((path, file));
    }
    if !is_route_of_the_page(path) {
        return None;
    }
    let name = if is_built() { "index.html" } else { PLACEHOLDER };
    Files::get(name).map(|file| (name, file))
}

/// The page routes by path, without file extensions: `/asks/0192…`, never `/robots.txt` or `/api/…`.
fn is_route_of_the_page(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    first != "api" && !last.contains('.')
}

fn respond(name: &str, file: rust_embed::EmbeddedFile) -> Response<Body> {
    let caching = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let kind = file.metadata.mimetype();
    let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.to_owned() };
    let kind = HeaderValue::try_from(kind).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    let mut response = Response::new(Body::from(file.data));
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(path: &str) -> (StatusCode, String) {
        let response = serve(Method::GET, path.parse().unwrap()).await;
        let kind = response.headers().get(header::CONTENT_TYPE).cloned();
        (response.status(), kind.map(|kind| kind.to_str().unwrap().to_owned()).unwrap_or_default())
    }

    #[tokio::test]
    async fn the_pages_own_routes_get_the_page() {
        for path in ["/", "/asks/0192c9a4-7a3e-7b61-8a1e-3f7a1b2c3d4e", "/sessions"] {
            assert_eq!(get(path).await, (StatusCode::OK, "text/html; charset=utf-8".into()), "{path}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_a_real_404() {
        for path in
            ["/robots.txt", "/assets/none.js", "/api/v1/none", "/api", "/placeholder.html", "/../x.rs"]
        {
            assert_eq!(get(path).await.0, StatusCode::NOT_FOUND, "{path}");
        }
    }

    #[tokio::test]
    async fn only_reading_is_allowed() {
        let response = serve(Method::POST, "/".parse().unwrap()).await;
        assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
