//! Which database is meant: an address as psql takes it, and what psql takes from the environment.

use stackrace_base::unit::ShownPath;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgres::Config;
use postgres::config::{Host, SslMode};

use super::password;
use stackrace_base::failure::Failure;
use stackrace_base::private::{Environment, private_text};

/// Time a server that does not answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Directory of the sockets of servers of this machine, unless the address or `PGHOST` says otherwise.
const SOCKETS: &str = "/var/run/postgresql";

/// A database, and how it is reached.
pub struct TeamAddress {
    /// For the library; holds the password.
    pub(super) config: Config,
    /// File with the certificates that may sign the server's; `None` for those the system trusts.
    pub(super) roots: Option<PathBuf>,
    /// `user@host:port/database`, for people: never a password.
    pub(super) shown: String,
}

impl TeamAddress {
    /// Understands `postgresql://[user@]host[:port]/database[?…]`, or `@FILE` with such an address.
    /// Nothing is connected yet.
    ///
    /// # Errors
    /// It is no such address, it has a password that every user of this machine can read, or a file
    /// cannot be read.
    pub fn understand(word: &str, environment: Environment<'_>) -> Result<Self, Failure> {
        match word.strip_prefix('@') {
            Some(file) => {
                let text = private_text(Path::new(file))?;
                Self::of(text.trim(), environment)
            }
            None => {
                let address = Self::of(word, environment);
                // The words of a command are shown to every user of this machine.
                if has_password(word) {
                    return Err(
                        Failure::refused("the address has a password, and other users can read the words of a command")
                            .next("write the address to a file: stackrace push @FILE; or use ~/.pgpass, PGPASSFILE or PGPASSWORD, as psql does; and change this password"),
                    );
                }
                address
            }
        }
    }

    fn of(url: &str, environment: Environment<'_>) -> Result<Self, Failure> {
        if !(url.starts_with("postgresql://") || url.starts_with("postgres://")) {
            // Not shown: a word in a wrong place may be a secret.
            return Err(Failure::usage("this is no address of a database").next(
                "write it as for psql: postgresql://USER@HOST/DATABASE, or @FILE for a file with it",
            ));
        }
        let word = |name: &str| environment(name).and_then(|value| value.into_string().ok());
        let (url, mode, roots) = without_encryption_words(url);
        let mut config: Config = url.parse().map_err(|error: postgres::Error| {
            let why = std::error::Error::source(&error)
                .map_or_else(String::new, |why| format!(": {why}"));
            Failure::usage(format!("this address of a database is not understood{why}"))
                .next("write it as for psql: postgresql://USER@HOST:PORT/DATABASE")
        })?;
        // The address counts first, then the environment, then what is usual.
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host(&word("PGHOST").unwrap_or_else(|| SOCKETS.to_owned()));
        }
        if config.get_ports().is_empty()
            && let Some(port) = word("PGPORT")
        {
            let port = port.parse().map_err(|_| {
                Failure::usage(format!("PGPORT={port} is no port"))
                    .next("unset it, or set a number")
            })?;
            config.port(port);
        }
        if config.get_user().is_none() {
            let user = ["PGUSER", "USER", "LOGNAME"].into_iter().find_map(word);
            config.user(&user.ok_or_else(|| {
                Failure::usage("the address names no user")
                    .next("postgresql://USER@HOST/DATABASE, or set PGUSER")
            })?);
        }
        if config.get_dbname().is_none() {
            let user = config.get_user().unwrap_or_default().to_owned();
            config.dbname(&word("PGDATABASE").unwrap_or(user));
        }
        config.ssl_mode(encryption(mode.or(word("PGSSLMODE")), &config)?);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE);
        }
        // A server that vanishes in the middle is found after half a minute, not after hours.
        config.tcp_user_timeout(PATIENCE * 3);
        config.application_name("stackrace");
        if config.get_password().is_none()
            && let Some(password) = password::find(&config, environment)?
        {
            config.password(password);
        }
        Ok(Self {
            shown: shown(&config),
            roots: roots.or(word("PGSSLROOTCERT")).map(PathBuf::from),
            config,
        })
    }

    /// `user@host:port/database`.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

/// Returns true if an address has a password, between the user and the host or behind the question mark.
fn has_password(url: &str) -> bool {
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    // A host has no `@`, so the last one ends the user: a password may have some.
    let place = place.split_once("://").map_or(place, |(_, place)| place);
    let before = place.rsplit_once('@').map(|(user, _)| user);
    before.is_some_and(|user| user.contains(':'))
        || form_urlencoded::parse(query.as_bytes()).any(|(name, _)| name == "password")
}

/// The address without the words on encryption, which the library knows in part, and these: the mode
/// and the file of certificates.
fn without_encryption_words(url: &str) -> (String, Option<String>, Option<String>) {
    let Some((place, query)) = url.split_once('?') else {
        return (url.to_owned(), None, None);
    };
    let (mut mode, mut roots) = (None, None);
    let mut left = Vec::new();
    for pair in query.split('&') {
        match form_urlencoded::parse(pair.as_bytes()).next() {
            Some((name, value)) if name == "sslmode" => mode = Some(value.into_owned()),
            Some((name, value)) if name == "sslrootcert" => roots = Some(value.into_owned()),
            _ => left.push(pair),
        }
    }
    let url = match left.is_empty() {
        true => place.to_owned(),
        false => format!("{place}?{}", left.join("&")),
    };
    (url, mode, roots)
}

/// Stricter than psql: what goes to another machine is encrypted, and its certificate is checked,
/// unless the user says `disable`.
fn encryption(mode: Option<String>, config: &Config) -> Result<SslMode, Failure> {
    let here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => ["localhost", "127.0.0.1", "::1"].contains(&name.as_str()),
    };
    let all_here = config.get_hosts().iter().all(here)
        && config
            .get_hostaddrs()
            .iter()
            .all(std::net::IpAddr::is_loopback);
    match mode.as_deref() {
        Some("disable") => Ok(SslMode::Disable),
        Some("require" | "verify-ca" | "verify-full") => Ok(SslMode::Require),
        // What psql means by these two is: as the server likes.
        None | Some("allow" | "prefer") => Ok(match all_here {
            true => SslMode::Disable,
            false => SslMode::Require,
        }),
        Some(mode) => Err(
            Failure::usage(format!("sslmode={} is unknown", mode.escape_debug()))
                .next("use one of: disable, prefer, require, verify-full"),
        ),
    }
}

/// `user@host:port/database`.
fn shown(config: &Config) -> String {
    let host = match (config.get_hosts().first(), config.get_hostaddrs().first()) {
        (Some(Host::Tcp(name)), _) => name.clone(),
        (Some(Host::Unix(path)), _) => path.shown().to_string(),
        (None, address) => address.map(ToString::to_string).unwrap_or_default(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or_default();
    format!("{user}@{host}:{port}/{database}")
}
