//! Where another machine is, as users of ssh write it.

use std::fmt;

/// Place of a machine: `[USER@]HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The text as it was asked for.
    text: String,
    /// `user@host`, or a name of the user's ssh configuration.
    pub(super) login: String,
    pub(super) port: Option<u16>,
}

impl Destination {
    /// Reads one. An IPv6 address with a port is in brackets.
    ///
    /// # Errors
    /// One sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (user, place) = match text.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, text),
        };
        let (host, port) = match place.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest
                    .split_once(']')
                    .ok_or_else(|| format!("{text}: the bracket is not closed"))?;
                (
                    host,
                    rest.strip_prefix(':').or((!rest.is_empty()).then_some("")),
                )
            }
            None => match place.split_once(':') {
                // More than one colon: an IPv6 address.
                Some((_, port)) if port.contains(':') => (place, None),
                Some((host, port)) => (host, Some(port)),
                None => (place, None),
            },
        };
        let port = port.map(|port| match port.parse() {
            Ok(port) if port > 0 => Ok(port),
            _ => Err(format!("{text}: {port} is no port")),
        });
        // What begins with a hyphen would be an option of ssh. Signs that a shell obeys would reach one
        // where a ProxyCommand of the user's own holds %h or %r.
        let plain = |word: &str, signs: &str| {
            let fits = |c: char| c.is_alphanumeric() || signs.contains(c);
            !word.is_empty() && !word.starts_with('-') && word.chars().all(fits)
        };
        if !plain(host, "._-:%") || !user.is_none_or(|user| plain(user, "._-@+")) {
            return Err(format!("{text:?} is no [USER@]HOST[:PORT]"));
        }
        Ok(Self {
            text: text.to_string(),
            login: user.map_or_else(|| host.to_string(), |user| format!("{user}@{host}")),
            port: port.transpose()?,
        })
    }

    /// A user of a guest whose port for ssh is one of this machine's; it is called by its own name.
    pub fn of_guest(name: &str, login: &str, port: u16) -> Self {
        Self {
            text: name.to_owned(),
            login: format!("{login}@127.0.0.1"),
            port: Some(port),
        }
    }

    /// The same machine for root.
    pub fn as_root(&self) -> String {
        let host = self.login.rsplit('@').next().unwrap_or_default();
        match self.port {
            Some(port) if host.contains(':') => format!("root@[{host}]:{port}"),
            Some(port) => format!("root@{host}:{port}"),
            None => format!("root@{host}"),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_read_as_ssh_users_write_it() {
        let read = |text: &str| Destination::parse(text).map(|to| (to.login, to.port));
        let is = |login: &str, port| Ok((login.to_string(), port));
        assert_eq!(read("server"), is("server", None));
        assert_eq!(read("root@server:2222"), is("root@server", Some(2222)));
        assert_eq!(read("me@corp@host"), is("me@corp@host", None));
        assert_eq!(read("::1"), is("::1", None));
        assert_eq!(read("root@[fe80::1]:22"), is("root@fe80::1", Some(22)));
        assert_eq!(read("[::1]"), is("::1", None));
        for text in ["root@server:2222", "root@[fe80::1]:22", "root@server"] {
            let user = text.replace("root@", "me@");
            assert_eq!(Destination::parse(&user).unwrap().as_root(), text);
        }
        for wrong in [
            "",
            "@host",
            "root@",
            "-oProxyCommand=x",
            "root@-x",
            "host:",
            "host:0",
            "host:ssh",
            "[::1",
            "[::1]22",
            "a b",
            "a;reboot",
            "$(reboot)",
            "`reboot`",
            "a|sh",
            "a\nb",
            "'a",
            "%h$x",
            "$(reboot)@host",
            "a;b@host",
            "host:70000",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
