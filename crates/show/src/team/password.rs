//! The password, from where psql takes it: `PGPASSWORD`, or the file of passwords.

use std::path::{Path, PathBuf};

use postgres::Config;
use postgres::config::Host;

use stackrace_base::failure::Failure;
use stackrace_base::private::{Environment, private_text};

/// The file of passwords in the user's home.
const FILE: &str = ".pgpass";

/// The password for a connection; `None` if none is known, and the server may need none.
///
/// # Errors
/// The file of passwords is there and cannot be used.
pub(super) fn find(
    config: &Config,
    environment: Environment<'_>,
) -> Result<Option<String>, Failure> {
    if let Some(password) = environment("PGPASSWORD").and_then(|text| text.into_string().ok()) {
        return Ok(Some(password));
    }
    let named = environment("PGPASSFILE").map(PathBuf::from);
    let at_home = || environment("HOME").map(|home| Path::new(&home).join(FILE));
    let Some(path) = named.or_else(at_home).filter(|path| path.exists()) else {
        return Ok(None);
    };
    // Sockets and this machine share a line, as in psql.
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(_)) => "localhost".to_owned(),
        None => config
            .get_hostaddrs()
            .first()
            .map(ToString::to_string)
            .unwrap_or_default(),
    };
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let wanted = [
        host.as_str(),
        &port,
        config.get_dbname().unwrap_or_default(),
        config.get_user().unwrap_or_default(),
    ];
    Ok(in_lines(&private_text(&path)?, wanted))
}

/// The password of the first line that fits host, port, database and user.
pub(super) fn in_lines(text: &str, wanted: [&str; 4]) -> Option<String> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(fields).find_map(|mut fields| {
        let fits = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
        // A line that lacks a field is no line, as in psql.
        let all = fields.len() == 5 && fields.iter().zip(&wanted).all(fits);
        all.then(|| fields.pop())?
    })
}

/// The five fields of a line, between colons; a backslash takes the next character as it is.
fn fields(line: &str) -> Vec<String> {
    // The last field is the rest of the line: a password may have colons.
    let mut fields = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, fields.len()) {
            (':', 1..5) => fields.push(String::new()),
            (letter, count) => {
                let letter = match letter {
                    '\\' => letters.next().unwrap_or('\\'),
                    letter => letter,
                };
                fields[count - 1].push(letter);
            }
        }
    }
    fields
}
