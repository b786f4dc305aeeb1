//! A connection, with errors that say what to do.

use stackrace_base::unit::{InWords, ShownPath};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use postgres::config::{Host, SslMode, SslNegotiation};
use postgres::error::SqlState;
use postgres::{Client, Config, Error, NoTls};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::SCHEMA;
use super::address::TeamAddress;
use super::limited::{Allowance, Limited, Unencrypted};
use stackrace_base::failure::Failure;
use stackrace_base::private::FILE_MAX;

/// Files where systems keep the certificates they trust.
const TRUSTED: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Characters of what a server says that are shown.
const WORDS_MAX: usize = 2000;

/// Connects; what the server sends is limited, so that it cannot make us hold whatever it likes.
///
/// # Errors
/// The server is not reached or refuses, or certificates cannot be read.
pub(super) fn connect(address: &TeamAddress, allowance: Allowance) -> Result<Client, Failure> {
    let on_file = |host: &Host| matches!(host, Host::Unix(_));
    let connected = match address.config.get_ssl_mode() {
        // The library wraps no socket of the file system. Users who can make one in its directory are
        // trusted with what goes over it.
        SslMode::Disable if address.config.get_hosts().iter().any(on_file) => {
            address.config.connect(NoTls)
        }
        SslMode::Disable => plain(&address.config).connect(Limited {
            encryption: Unencrypted,
            allowance,
        }),
        _ => address.config.connect(Limited {
            encryption: encrypted(address)?,
            allowance,
        }),
    };
    connected.map_err(|error| failed("connect to", address, &error))
}

/// The same database, reached through a stream of ours that encrypts nothing.
fn plain(config: &Config) -> Config {
    let mut config = config.clone();
    // The library asks for the name that a certificate would have.
    if config.get_hosts().is_empty() {
        for address in config.get_hostaddrs().to_vec() {
            config.host(&address.to_string());
        }
    }
    // At once: the server is not asked if it speaks anything else.
    config
        .ssl_mode(SslMode::Require)
        .ssl_negotiation(SslNegotiation::Direct);
    config
}

fn encrypted(address: &TeamAddress) -> Result<MakeRustlsConnect, Failure> {
    let known = TRUSTED.map(Path::new);
    let known = known
        .into_iter()
        .find(|path| path.exists())
        .map(Path::to_path_buf);
    let path: PathBuf = address.roots.clone().or(known).ok_or_else(|| {
        Failure::unable("this system has no certificates that it trusts")
            .next("name a file with the server's: ?sslrootcert=FILE behind the address")
    })?;
    let cannot = |why: String| {
        Failure::unable(format!(
            "no certificate can be read from {}: {why}",
            path.shown()
        ))
        .next("name a file in PEM: ?sslrootcert=FILE behind the address")
    };
    let text = FILE_MAX
        .read(&path)
        .map_err(|error| cannot(error.in_words()))?;
    // Only these: a certificate that is not signed by one of them is refused.
    let mut roots = RootCertStore::empty();
    // Systems list a few that no library understands: those are left out.
    let found = CertificateDer::pem_slice_iter(&text).filter_map(Result::ok);
    let (added, _) = roots.add_parsable_certificates(found);
    if added == 0 {
        return Err(cannot("it has none".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::internal(format!("no encryption: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// An error of the library as one for the user.
pub(super) fn failed(tried: &str, address: &TeamAddress, error: &Error) -> Failure {
    let said = match error.as_db_error() {
        Some(said) => said.message().chars().take(WORDS_MAX).collect(),
        // The library's own text names no cause; that is one level below.
        None => std::error::Error::source(error).map_or_else(
            || error.to_string(),
            |cause| match cause.downcast_ref::<std::io::Error>() {
                Some(of_system) => of_system.in_words(),
                None => cause.to_string(),
            },
        ),
    };
    let what = format!("cannot {tried} {}: {}", address.shown, said.escape_debug());
    Failure::unable(what).next(advice(address, error))
}

/// Advice on the places for a password.
const PASSWORD: &str = "give the password in ~/.pgpass, PGPASSFILE or PGPASSWORD, as for psql; or have pg_hba.conf let this user in";

fn advice(address: &TeamAddress, error: &Error) -> String {
    let user = address.config.get_user().unwrap_or_default();
    let database = address.config.get_dbname().unwrap_or_default();
    let Some(code) = error.code() else {
        // The library ends the conversation itself where the server asks for one and there is none.
        let why = std::error::Error::source(error).map(ToString::to_string);
        if address.config.get_password().is_none()
            && why.is_some_and(|why| why.contains("password missing"))
        {
            return PASSWORD.to_owned();
        }
        return match address.config.get_ssl_mode() {
            SslMode::Disable => "check host, port and whether the server runs: pg_isready".to_owned(),
            _ => "check host and port with pg_isready; encryption: ?sslrootcert=FILE names the certificate that signed the server's, ?sslmode=disable does without".to_owned(),
        };
    };
    if *code == SqlState::INVALID_CATALOG_NAME {
        return format!("make the database: createdb {database}; stackrace makes its tables in it");
    }
    if [
        SqlState::INVALID_PASSWORD,
        SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
    ]
    .contains(code)
    {
        return PASSWORD.to_owned();
    }
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        return format!(
            "have the owner grant it. To make the tables: GRANT CREATE ON DATABASE \"{database}\" TO \"{user}\". \
             To push: GRANT USAGE ON SCHEMA stackrace TO \"{user}\"; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA stackrace TO \"{user}\". \
             To read: USAGE and SELECT"
        );
    }
    "nothing of this run was entered; push it again when that is mended".to_owned()
}

/// The version of the tables; `None` if there are none.
///
/// # Errors
/// The database cannot be asked.
pub(super) fn version(client: &mut impl postgres::GenericClient) -> Result<Option<i32>, Error> {
    let there = client.query_one(
        "SELECT to_regclass('stackrace.schema_version') IS NOT NULL",
        &[],
    )?;
    if !there.try_get::<_, bool>(0)? {
        return Ok(None);
    }
    let row = client.query_one("SELECT max(version) FROM stackrace.schema_version", &[])?;
    row.try_get(0)
}

/// Refuses tables of another version.
///
/// # Errors
/// They are of another version.
pub(super) fn is_known(address: &TeamAddress, version: i32) -> Result<(), Failure> {
    let next = match version.cmp(&SCHEMA) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Greater => "use that stackrace, or a newer one".to_owned(),
        // All of it can be made anew from the lines, which every version keeps as they are.
        std::cmp::Ordering::Less => "make a new database (createdb NAME) and push the runs there; the old one stays as it is".to_owned(),
    };
    Err(Failure::refused(format!(
        "the tables in {} are of version {version}; this stackrace knows version {SCHEMA}",
        address.shown
    ))
    .next(next))
}
