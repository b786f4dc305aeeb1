//! Who is let in.
//!
//! Three strangers are kept out. A foreign page that is open in the user's browser: its
//! requests bear its own `Origin`. A foreign name that was made to mean this machine (DNS
//! rebinding): the browser still sends that name as `Host`, and only addresses, `localhost` and this
//! machine's own name are answered. Others who can reach the port: the token, which is shown
//! where the server was started, is compared in constant time, and is kept in a cookie after the
//! first visit, so that it does not stay in addresses.

use std::net::IpAddr;

use super::http::{HttpRequest, Method};

/// Rules on who is let in, and by what.
#[derive(Debug, Clone)]
pub struct Guard {
    /// Secret a visitor has to know; `None` if everyone who reaches the port may read.
    pub token: Option<String>,
    /// Only this machine reaches the port.
    pub loopback: bool,
    /// This machine's own name.
    pub name: String,
    /// The port: cookies do not tell the ports of a machine apart, their names must.
    pub port: u16,
}

/// Decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Admission {
    /// The request is answered.
    Granted,
    /// The token was in the address: it goes into a cookie, and the visitor to the address without.
    Cookie {
        /// Value of the header `Set-Cookie`.
        cookie: String,
        /// The address.
        place: String,
    },
    /// The request is refused: status and a sentence.
    Refused(u16, &'static str),
}

impl Guard {
    /// Decides whether a request is answered.
    pub(super) fn admit(&self, request: &HttpRequest) -> Admission {
        let Some(host) = request.header("host").filter(|host| self.ours(host)) else {
            return Admission::Refused(
                421,
                "Unknown host name. Use the address that the server printed.",
            );
        };
        if !same_origin(request, host) {
            return Admission::Refused(403, "Requests from other sites are refused.");
        }
        let Some(token) = &self.token else {
            return Admission::Granted;
        };
        if let Some(given) = request.asked("token") {
            // `Lax`: a link in a mail or a chat still opens. No script can read it.
            return if same(given, token) {
                Admission::Cookie {
                    cookie: format!(
                        "{}={token}; Path=/; HttpOnly; SameSite=Lax",
                        self.cookie_name()
                    ),
                    place: without_token(request),
                }
            } else {
                Admission::Refused(403, "Wrong token.")
            };
        }
        let bearer = request.header("authorization");
        let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
        if self
            .cookies(request)
            .chain(bearer)
            .any(|given| same(given, token))
        {
            Admission::Granted
        } else {
            Admission::Refused(
                401,
                "This server needs its token: open the address it printed.",
            )
        }
    }

    fn cookie_name(&self) -> String {
        format!("stackrace-{}", self.port)
    }

    /// Values of our cookie.
    fn cookies<'a>(&self, request: &'a HttpRequest) -> impl Iterator<Item = &'a str> {
        let name = self.cookie_name();
        let headers = request.headers.iter().filter(|(name, _)| name == "cookie");
        headers
            .flat_map(|(_, value)| value.split(';'))
            .filter_map(move |pair| {
                let (known, value) = pair.trim().split_once('=')?;
                (known == name).then_some(value)
            })
    }

    /// Returns true if a name is an address or this machine's own. The port is not looked at: a
    /// tunnel has another one, and a rebound name would have ours.
    fn ours(&self, host: &str) -> bool {
        // Brackets keep the colons of an IPv6 address apart from that of the port.
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        match name.parse::<IpAddr>() {
            Ok(address) => !self.loopback || address.is_loopback(),
            Err(_) => {
                name.eq_ignore_ascii_case("localhost")
                    || (!self.loopback
                        && !self.name.is_empty()
                        && name.eq_ignore_ascii_case(&self.name))
            }
        }
    }
}

/// Returns true if a request comes from a page of ours or from no page. Browsers name the origin of
/// what they send, and since 2023 all of them say how it relates to us.
fn same_origin(request: &HttpRequest, host: &str) -> bool {
    // Asked of all headers: with two of them `header` finds none, and none is ours.
    if request.headers.iter().any(|(name, _)| name == "origin") {
        let ours = format!("http://{host}");
        return request.header("origin") == Some(ours.as_str());
    }
    match request.header("sec-fetch-site") {
        None | Some("same-origin" | "none") => true,
        // A link on another page was followed.
        Some(_) => {
            request.method == Method::Get && request.header("sec-fetch-mode") == Some("navigate")
        }
    }
}

/// Compares in constant time: hashes do, and they say nothing of the lengths.
fn same(given: &str, token: &str) -> bool {
    blake3::hash(given.as_bytes()) == blake3::hash(token.as_bytes())
}

/// The address that was asked for, its token left out.
fn without_token(request: &HttpRequest) -> String {
    let rest = request.query.iter().filter(|(name, _)| name != "token");
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(rest)
        .finish();
    // Two slashes would begin another machine's name.
    let path = format!("/{}", request.path.trim_start_matches('/'));
    if query.is_empty() {
        path
    } else {
        format!("{path}?{query}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn guard(loopback: bool, token: Option<&str>) -> Guard {
        Guard {
            token: token.map(str::to_owned),
            loopback,
            name: "storage-1".to_owned(),
            port: 7878,
        }
    }

    fn request(method: Method, query: &str, headers: &[(&str, &str)]) -> HttpRequest {
        HttpRequest {
            method,
            head_only: false,
            path: "/run/x".to_owned(),
            query: form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            form: Vec::new(),
        }
    }

    fn status(guard: &Guard, method: Method, headers: &[(&str, &str)]) -> u16 {
        match guard.admit(&request(method, "", headers)) {
            Admission::Granted => 200,
            Admission::Cookie { .. } => 303,
            Admission::Refused(status, _) => status,
        }
    }

    #[test]
    fn only_addresses_and_own_names_are_answered() {
        let loopback = guard(true, None);
        let network = guard(false, None);
        for (host, on_loopback, on_network) in [
            ("127.0.0.1:7878", 200, 200),
            ("localhost:7878", 200, 200),
            ("localhost:9000", 200, 200),
            ("[::1]:7878", 200, 200),
            ("192.168.1.5:7878", 421, 200),
            ("storage-1:7878", 421, 200),
            ("evil.example:7878", 421, 421),
            ("localhost.evil.example", 421, 421),
            ("127.0.0.1.evil.example", 421, 421),
            ("", 421, 421),
        ] {
            let headers = [("host", host)];
            assert_eq!(
                status(&loopback, Method::Get, &headers),
                on_loopback,
                "{host}"
            );
            assert_eq!(
                status(&network, Method::Get, &headers),
                on_network,
                "{host}"
            );
        }
        assert_eq!(status(&loopback, Method::Get, &[]), 421);
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(status(&loopback, Method::Get, &two), 421);
    }

    #[test]
    fn a_foreign_page_is_not_answered() {
        let guard = guard(true, None);
        let host = ("host", "127.0.0.1:7878");
        for (headers, get, post) in [
            (vec![], 200, 200),
            (vec![("origin", "http://127.0.0.1:7878")], 200, 200),
            (vec![("origin", "http://127.0.0.1:8080")], 403, 403),
            (vec![("origin", "https://evil.example")], 403, 403),
            (vec![("origin", "null")], 403, 403),
            (vec![("sec-fetch-site", "same-origin")], 200, 200),
            (vec![("sec-fetch-site", "none")], 200, 200),
            (vec![("sec-fetch-site", "cross-site")], 403, 403),
            (
                vec![
                    ("sec-fetch-site", "same-site"),
                    ("sec-fetch-mode", "no-cors"),
                ],
                403,
                403,
            ),
            (
                vec![
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                ],
                200,
                403,
            ),
        ] {
            let headers: Vec<_> = std::iter::once(host).chain(headers).collect();
            assert_eq!(status(&guard, Method::Get, &headers), get, "{headers:?}");
            assert_eq!(status(&guard, Method::Post, &headers), post, "{headers:?}");
        }
    }

    #[test]
    fn the_token_is_asked_for_and_goes_into_a_cookie() {
        let guard = guard(false, Some(TOKEN));
        let host = ("host", "10.0.0.7:7878");
        assert_eq!(status(&guard, Method::Get, &[host]), 401);
        let visit = |query: &str| guard.admit(&request(Method::Get, query, &[host]));
        assert_eq!(
            visit(&format!("a=b+c&token={TOKEN}")),
            Admission::Cookie {
                cookie: format!("stackrace-7878={TOKEN}; Path=/; HttpOnly; SameSite=Lax"),
                place: "/run/x?a=b+c".to_owned(),
            }
        );
        assert!(matches!(visit("token="), Admission::Refused(403, _)));
        assert!(matches!(
            visit(&format!("token={TOKEN}0")),
            Admission::Refused(403, _)
        ));
        let cookie = |value: &str| status(&guard, Method::Post, &[host, ("cookie", value)]);
        assert_eq!(cookie(&format!("other=1; stackrace-7878={TOKEN}")), 200);
        assert_eq!(cookie(&format!("stackrace-7879={TOKEN}")), 401);
        assert_eq!(cookie("stackrace-7878="), 401);
        let bearer = format!("Bearer {TOKEN}");
        assert_eq!(
            status(&guard, Method::Get, &[host, ("authorization", &bearer)]),
            200
        );
    }
}
