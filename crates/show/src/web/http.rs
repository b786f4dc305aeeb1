//! One request and one answer over HTTP/1.1, within limits.
//!
//! Heads are parsed by `httparse`, forms by `form_urlencoded`. Every connection carries one request
//! and is closed after it: a page needs only a handful of requests to the same machine, and a
//! connection without a second request cannot mix up two.

/// Bytes of a request line with its headers.
pub(super) const HEAD_MAX: usize = 16 << 10;
/// Headers that a request may have.
const HEADERS_MAX: usize = 64;
/// Values in an address or a form.
const PAIRS_MAX: usize = 128;

/// The methods of HTTP that are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// Read; `HEAD` is one without the body.
    Get,
    /// Change, or a form too long for an address.
    Post,
}

/// A visitor's request: head and body, both within the limits.
#[derive(Debug, Clone)]
pub(super) struct HttpRequest {
    /// Method: to read or to do something.
    pub(super) method: Method,
    /// Only the head of the answer is wanted.
    pub(super) head_only: bool,
    /// The path as it was sent: begins with `/`, escapes and all.
    pub(super) path: String,
    /// Query behind the `?`, read.
    pub(super) query: Vec<(String, String)>,
    /// Headers, names in small letters, in the order they came.
    pub(super) headers: Vec<(String, String)>,
    /// Fields of a form.
    pub(super) form: Vec<(String, String)>,
}

/// Reasons a request is not answered as it was meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HttpError {
    /// The other side went away, or was silent for too long.
    Gone,
    /// The text is no request, too long, or nothing we speak: status and a sentence.
    Refused(u16, &'static str),
}

impl HttpRequest {
    /// The only header of this name; none where there is none, or more than one.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known == name);
        let value = found.next()?.1.as_str();
        found.next().is_none().then_some(value)
    }

    /// The first value of this name in the address.
    pub(super) fn asked(&self, name: &str) -> Option<&str> {
        first(&self.query, name)
    }

    /// The first value of this name in the form.
    pub(super) fn filled(&self, name: &str) -> Option<&str> {
        first(&self.form, name)
    }
}

fn first<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// The head, and where the body begins; `None` if it is not complete.
///
/// # Errors
/// It is no request, too long, or nothing we speak.
pub(super) fn head(bytes: &[u8]) -> Result<Option<(HttpRequest, usize)>, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Request::new(&mut headers);
    let begin = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(begin)) => begin,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => {
            return Err(HttpError::Refused(431, "The request has too many headers."));
        }
        Err(_) => return Err(HttpError::Refused(400, "Malformed HTTP request.")),
    };
    let (method, head_only) = match parsed.method {
        Some("GET") => (Method::Get, false),
        Some("HEAD") => (Method::Get, true),
        Some("POST") => (Method::Post, false),
        _ => {
            return Err(HttpError::Refused(
                405,
                "Only GET, HEAD and POST are supported.",
            ));
        }
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    // A request for a proxy (`http://…`) or for all of a server (`*`) has none.
    if !path.starts_with('/') {
        return Err(HttpError::Refused(400, "The request has no path."));
    }
    let mut named = Vec::new();
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value);
        let value = value.map_err(|_| HttpError::Refused(400, "A header is not text."))?;
        named.push((header.name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let request = HttpRequest {
        method,
        head_only,
        path: path.to_owned(),
        query: pairs(query.as_bytes())?,
        headers: named,
        form: Vec::new(),
    };
    Ok(Some((request, begin)))
}

/// A request without its body; `None` if its head is not complete.
#[cfg(any(test, feature = "testing"))]
pub(super) fn understood(bytes: &[u8]) -> Result<Option<HttpRequest>, HttpError> {
    let Some((request, _)) = head(bytes)? else {
        return Ok(None);
    };
    length(&request, 0)?;
    Ok(Some(request))
}

/// Bytes of the body.
///
/// # Errors
/// They are not said in a way that we speak, or more than so many.
pub(super) fn length(request: &HttpRequest, most: usize) -> Result<usize, HttpError> {
    let named = |name: &str| request.headers.iter().any(|(known, _)| known == name);
    // A form with two lengths is how a second request is smuggled in: only one of both is read.
    if named("transfer-encoding") {
        return Err(HttpError::Refused(411, "The form needs a Content-Length."));
    }
    if !named("content-length") {
        return Ok(0);
    }
    // Digits alone (RFC 9110): what other servers on the way read otherwise is refused, not guessed at.
    let digits = |length: &&str| !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let length = request.header("content-length").filter(digits);
    match length.and_then(|length| length.parse::<usize>().ok()) {
        None => Err(HttpError::Refused(400, "The form length is not a number.")),
        Some(length) if length > most => Err(HttpError::Refused(
            413,
            "The form is too long: imported texts may have 16 MiB together, other forms 4 KiB.",
        )),
        Some(length) => Ok(length),
    }
}

/// Names and values.
///
/// # Errors
/// There are too many.
pub(super) fn pairs(text: &[u8]) -> Result<Vec<(String, String)>, HttpError> {
    let pairs = form_urlencoded::parse(text).into_owned();
    // One more than allowed is enough to see that there are too many.
    let pairs: Vec<_> = pairs.take(PAIRS_MAX + 1).collect();
    match pairs.len() > PAIRS_MAX {
        true => Err(HttpError::Refused(400, "There are too many values.")),
        false => Ok(pairs),
    }
}

/// The reply to a visitor, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpResponse {
    /// Status code of HTTP: 200, 404.
    pub(super) status: u16,
    /// The body's media type.
    pub(super) kind: &'static str,
    /// Further headers.
    pub(super) headers: Vec<(&'static str, String)>,
    /// Body behind the headers, of the type `kind`.
    pub(super) body: Vec<u8>,
}

/// A page may load from us alone, run our one script, be framed nowhere and send forms only here.
pub(super) const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; \
     connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

impl HttpResponse {
    /// An answer with a body.
    pub(super) fn new(status: u16, kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            kind,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// A redirect (303): the visitor is to get another address.
    pub(super) fn see(place: impl Into<String>) -> Self {
        Self::new(303, "text/plain; charset=utf-8", "").with("Location", place)
    }

    /// Adds a header to the answer.
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The head as it is sent, but for the length and what ends it.
    pub(super) fn head(&self) -> String {
        // Where no page may be named as the one before, browsers call our own forms those of no origin
        // (`Origin: null`): to us it is named.
        let mut head = format!(
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n",
            self.status,
            reason(self.status),
            self.kind
        );
        let policy = "Content-Security-Policy";
        if !self.headers.iter().any(|(name, _)| *name == policy) {
            head.push_str(&format!("{policy}: {POLICY}\r\n"));
        }
        for (name, value) in &self.headers {
            // A line break would begin another header.
            let value: String = value.chars().filter(|c| !c.is_control()).collect();
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        303 => "See Other",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> HttpRequest {
        head(text.as_bytes()).unwrap().unwrap().0
    }

    #[test]
    fn a_request_is_read_as_far_as_it_has_come() {
        let text =
            "GET /run/a%2fb?token=x+y&a=%C3%A4 HTTP/1.1\r\nHost: here\r\nX: 1\r\nx: 2\r\n\r\n";
        for end in 0..text.len() {
            assert!(head(&text.as_bytes()[..end]).unwrap().is_none(), "{end}");
        }
        let request = parsed(text);
        assert_eq!(request.path, "/run/a%2fb");
        assert_eq!(request.asked("token"), Some("x y"));
        assert_eq!(request.asked("a"), Some("ä"));
        assert_eq!(request.header("host"), Some("here"));
        assert_eq!(request.header("x"), None, "which of the two?");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let refused = |text: &str| match head(text.as_bytes()) {
            Err(HttpError::Refused(status, _)) => status,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("\u{1}\u{2}\r\n\r\n"), 400);
        assert_eq!(refused("DELETE / HTTP/1.1\r\n\r\n"), 405);
        assert_eq!(refused("GET http://a/ HTTP/1.1\r\n\r\n"), 400);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65));
        assert_eq!(refused(&many), 431);
        let values = format!("GET /?{} HTTP/1.1\r\n\r\n", "a&".repeat(PAIRS_MAX + 1));
        assert_eq!(refused(&values), 400);
        let body =
            |header: &str| length(&parsed(&format!("POST / HTTP/1.1\r\n{header}\r\n\r\n")), 7);
        assert_eq!(body("Content-Length: 7"), Ok(7));
        for (header, status) in [
            ("Transfer-Encoding: chunked", 411),
            ("Transfer-Encoding: chunked\r\nContent-Length: 1", 411),
            ("Content-Length: -1", 400),
            ("Content-Length: +3", 400),
            ("Content-Length:", 400),
            ("Content-Length: 0x3", 400),
            ("Content-Length: 3, 3", 400),
            ("Content-Length: 3 3", 400),
            ("Content-Length: ٣", 400),
            ("Content-Length: 3.0", 400),
            ("Content-Length: 99999999999999999999999", 400),
            ("Content-Length: 1\r\nContent-Length: 2", 400),
            ("Content-Length: 8", 413),
        ] {
            assert!(
                matches!(body(header), Err(HttpError::Refused(s, _)) if s == status),
                "{header}"
            );
        }
    }

    #[test]
    fn a_header_cannot_begin_another_one() {
        let head = HttpResponse::see("/a\r\nSet-Cookie: b=c").head();
        assert!(head.contains("Location: /aSet-Cookie: b=c\r\n"), "{head}");
        assert!(head.contains("default-src 'none'"), "{head}");
    }
}
