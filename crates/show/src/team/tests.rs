//! Addresses, passwords, and the tables against those of the export; a real server is in `tests/team`.

use std::ffi::OsString;

use super::address::TeamAddress;
use super::password::in_lines;
use super::push::KEPT;
use super::{SCHEMA, TABLES, fill};
use crate::export;
use stackrace_results::tables::ColumnValues;

const FORMAT: &str = include_str!("../../../../docs/formats/team.md");

fn environment(
    pairs: &'static [(&'static str, &'static str)],
) -> impl Fn(&str) -> Option<OsString> {
    move |name| {
        let found = pairs.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| OsString::from(value))
    }
}

/// Columns of a table of `schema.sql`: each name with its type.
fn columns(table: &str) -> Vec<(String, String)> {
    let begin = format!("CREATE TABLE stackrace.{table} (\n");
    let body = TABLES.split_once(&begin).expect(table).1;
    let body = body.split_once("\n);").expect(table).0;
    let columns = body
        .lines()
        .filter(|line| !line.trim().starts_with("PRIMARY KEY"));
    columns
        .map(|line| {
            let (name, kind) = line.trim().split_once(' ').expect(line);
            let kind = kind.trim().trim_end_matches(',');
            let kind = kind.split(" NOT NULL").next().unwrap_or(kind);
            let kind = kind.trim_end_matches(" PRIMARY KEY");
            (name.trim_matches('"').to_owned(), kind.to_owned())
        })
        .collect()
}

fn sql_word(values: &ColumnValues) -> &'static str {
    match fill::sql_type(values).name() {
        "int8" => "bigint",
        "float8" => "double precision",
        "bool" => "boolean",
        "timestamptz" => "timestamptz",
        "text" => "text",
        other => panic!("{other}"),
    }
}

#[test]
fn the_tables_have_the_columns_of_the_export() {
    for (name, has_levels) in KEPT {
        let table = export::ALL.iter().find(|table| table.name == name);
        let exported = (table.unwrap().of)(&[]);
        let mut expected: Vec<(String, String)> = exported
            .columns
            .iter()
            .map(|column| (column.name.clone(), sql_word(&column.values).to_owned()))
            .collect();
        let mut found = columns(name);
        if has_levels {
            expected.push(("levels".to_owned(), "jsonb".to_owned()));
        }
        found.sort();
        expected.sort();
        assert_eq!(
            found, expected,
            "{name}: a change needs a new version of the schema"
        );
    }
}

#[test]
fn every_column_and_the_version_are_documented() {
    assert!(FORMAT.contains(&format!("version {SCHEMA}")));
    for table in ["runs", "log_lines"] {
        let (_, section) = FORMAT.split_once(&format!("## `{table}`")).expect(table);
        let section = section.split("\n## ").next().unwrap_or(section);
        for (column, kind) in columns(table) {
            assert!(
                section.contains(&format!("| `{column}` | {kind}")),
                "{table}.{column} {kind}"
            );
        }
    }
    for (name, _) in KEPT {
        assert!(FORMAT.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn an_address_is_completed_as_psql_does() {
    let here = environment(&[("USER", "ann"), ("HOME", "/nonexistent")]);
    let set = environment(&[
        ("PGUSER", "bob"),
        ("PGHOST", "db.example"),
        ("PGPORT", "6000"),
        ("PGDATABASE", "team"),
        ("HOME", "/nonexistent"),
    ]);
    let shown = |word, environment| {
        TeamAddress::understand(word, environment).map(|address| address.shown().to_owned())
    };
    for (word, without, with) in [
        (
            "postgresql://",
            "ann@/var/run/postgresql:5432/ann",
            "bob@db.example:6000/team",
        ),
        ("postgres://eve@h:1/d", "eve@h:1/d", "eve@h:1/d"),
        (
            "postgresql:///d?host=%2Ftmp",
            "ann@/tmp:5432/d",
            "bob@/tmp:6000/d",
        ),
        (
            "postgresql://e%40x@h/a%2Fb?sslmode=require",
            "e@x@h:5432/a/b",
            "e@x@h:5432/a/b",
        ),
    ] {
        assert_eq!(shown(word, &here).unwrap(), without, "{word}");
        assert_eq!(shown(word, &set).unwrap(), with, "{word}");
    }
    let nothing = environment(&[]);
    for word in [
        "",
        "host=h",
        "postgresql://h/d",
        "postgresql://u@h:port/d",
        "postgresql://u@h/d?odd=1",
        "http://u@h/d",
    ] {
        assert!(TeamAddress::understand(word, &nothing).is_err(), "{word}");
    }
}

#[test]
fn what_leaves_this_machine_is_encrypted_unless_told_otherwise() {
    use postgres::config::SslMode;
    let known = environment(&[("HOME", "/nonexistent")]);
    for (word, mode) in [
        ("postgresql://u@h/d", SslMode::Require),
        ("postgresql://u@h/d?sslmode=prefer", SslMode::Require),
        (
            "postgresql://u@h/d?sslmode=verify-full&sslrootcert=x",
            SslMode::Require,
        ),
        ("postgresql://u@localhost,h/d", SslMode::Require),
        ("postgresql://u@h/d?sslmode=disable", SslMode::Disable),
        ("postgresql://u@localhost/d", SslMode::Disable),
        (
            "postgresql://u@localhost/d?sslmode=require",
            SslMode::Require,
        ),
        ("postgresql://u@/d?host=%2Ftmp", SslMode::Disable),
    ] {
        let address = TeamAddress::understand(word, &known)
            .unwrap_or_else(|error| panic!("{word}: {error:?}"));
        assert_eq!(address.config.get_ssl_mode(), mode, "{word}");
    }
}

#[test]
fn a_password_among_the_words_is_refused_and_never_shown() {
    let known = environment(&[("HOME", "/nonexistent")]);
    for word in [
        "postgresql://u:s3cret@h/d",
        "postgresql://u:s3@cret@h/d",
        "postgresql://u@h/d?password=s3cret",
        "postgresql://u@h/d?sslmode=disable&p%61ssword=s3cret",
        "postgresql://u:s3cret@",
        "psql://u:s3cret@h",
    ] {
        let refused = TeamAddress::understand(word, &known)
            .map(|address| address.shown)
            .unwrap_err();
        assert!(!refused.render().contains("cret"), "{}", refused.render());
    }
}

#[test]
fn the_first_line_that_fits_has_the_password() {
    let text =
        "# h:1:d:u:comment\nh:1:d:other:no\nh:1:d:u\nh:*:d:u:a\\:b\\\\c\n*:*:*:*:last:with:colons";
    assert_eq!(
        in_lines(text, ["h", "1", "d", "u"]).as_deref(),
        Some("a:b\\c")
    );
    assert_eq!(
        in_lines(text, ["x", "1", "d", "u"]).as_deref(),
        Some("last:with:colons")
    );
    assert_eq!(in_lines("h:1:d:u:p", ["h", "2", "d", "u"]), None);
    assert_eq!(in_lines("", ["h", "1", "d", "u"]), None);
}

/// A server that lets everybody in, and then says the same without end. Gives back its port, and how
/// much of it was taken.
fn endless(said: Vec<u8>) -> (u16, std::thread::JoinHandle<usize>) {
    use std::io::{Read as _, Write as _};
    /// More than the system keeps on the way.
    const ENOUGH: usize = 64 << 20;
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]).unwrap();
        // AuthenticationOk, ReadyForQuery.
        let _ = stream.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
        let mut taken = 0;
        while taken < ENOUGH && stream.write_all(&said).is_ok() {
            taken += said.len();
        }
        taken
    });
    (port, server)
}

/// A message of the protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap();
    [&[kind][..], &length.to_be_bytes(), body].concat()
}

#[test]
fn a_server_cannot_make_us_hold_whatever_it_sends() {
    let setting = |size: usize| [b"name\0", &*vec![b'a'; size], b"\0"].concat();
    let row = [&[0, 1, 0, 1, 0, 0][..], &vec![b'a'; 1 << 16]].concat();
    let notice = [b"SNOTICE\0M", &*vec![b'a'; 1 << 16], b"\0\0"].concat();
    for (name, said) in [
        (
            "a message without end",
            [b"D\x7f\xff\xff\xff", &*vec![b'a'; 1 << 16]].concat(),
        ),
        ("rows", message(b'D', &row)),
        ("settings", message(b'S', &setting(1 << 16))),
        ("small settings", message(b'S', &setting(8)).repeat(1 << 12)),
        ("notices", message(b'N', &notice)),
        (
            "notifications",
            message(b'A', &[&[0; 4][..], &setting(1 << 16)].concat()),
        ),
        (
            "an error",
            message(
                b'E',
                &[b"SERROR\0C42601\0M", &*vec![b'a'; 8 << 20], b"\0\0"].concat(),
            ),
        ),
    ] {
        for pushes in [true, false] {
            let (port, server) = endless(said.clone());
            let url = format!("postgresql://someone@127.0.0.1:{port}/runs");
            let address = TeamAddress::understand(&url, &environment(&[])).unwrap();
            let refused = match pushes {
                true => super::TeamWriter::open(address).err(),
                false => {
                    let clock = std::sync::Arc::new(stackrace_base::time::SystemClock);
                    super::TeamRuns::open(address, clock).err()
                }
            };
            let (why, _) = refused.expect(name).into_parts();
            assert!(why.len() < 4000, "{name}: {} bytes", why.len());
            let taken = server.join().unwrap();
            assert!(
                !pushes || taken < 32 << 20,
                "{name}: {taken} bytes were taken"
            );
        }
    }
}
