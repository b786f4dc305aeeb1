//! A PostgreSQL of a test's own: its data and its socket in a directory that is removed with it.

use std::cell::Cell;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use stackrace_test_needs as needs;

/// Where Debian keeps the programs of each version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// Who runs the server where root runs the tests: PostgreSQL refuses root.
const SERVER: &str = "postgres";
/// Who owns the databases.
pub(crate) const OWNER: &str = "owner";
/// A user who has a password and no rights.
pub(crate) const GUEST: &str = "guest";
/// The guest's password.
pub(crate) const PASSWORD: &str = "only:a\\test";

/// A server with the empty database `team`.
pub(crate) struct Database {
    dir: tempfile::TempDir,
    bin: PathBuf,
    port: Cell<u16>,
}

impl Database {
    /// Starts it; skips the test where there is no PostgreSQL.
    pub(crate) fn start() -> Self {
        if !cfg!(feature = "postgresql") {
            needs::skip("built without PostgreSQL");
        }
        let bin = programs().unwrap_or_else(|| needs::skip("needs postgresql"));
        let dir = tempfile::Builder::new()
            .prefix("stackrace-test-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in("/var/tmp")
            .unwrap();
        if needs::is_root() {
            let Some((uid, gid)) = ids(SERVER) else {
                needs::skip(format!("needs the user {SERVER}, who runs the server"));
            };
            chown(dir.path(), Some(uid), Some(gid)).unwrap();
        }
        let port = Cell::new(5432);
        let database = Self { dir, bin, port };
        let data = database.data();
        let data = data.to_str().unwrap();
        let made = [
            "-D",
            data,
            "-U",
            OWNER,
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        ];
        database.tool("initdb", &made);
        let rules = format!("local all {GUEST} scram-sha-256\nlocal all all trust\n");
        fs::write(database.data().join("pg_hba.conf"), rules).unwrap();
        let log = database.path().join("server.log");
        // No address: nothing but the socket in this directory leads to it.
        let options = format!(
            "-c listen_addresses='' -c unix_socket_directories={} -c fsync=off",
            database.path().display()
        );
        let log = log.to_str().unwrap();
        database.tool(
            "pg_ctl",
            &["start", "-w", "-s", "-D", data, "-l", log, "-o", &options],
        );
        database.sql("postgres", "CREATE DATABASE team");
        let guest = format!("CREATE ROLE {GUEST} LOGIN PASSWORD '{PASSWORD}'");
        database.sql("postgres", &guest);
        database
    }

    /// Starts it again so that it is reached over the network too, but encrypted alone. Gives the port, and
    /// the file of the certificate that signed the server's; that one is of 127.0.0.1.
    pub(crate) fn encrypt(&self) -> (u16, PathBuf) {
        let (roots, key) = (self.path().join("root.crt"), self.path().join("root.key"));
        self.certificate("root", "/CN=a test's root", &[]);
        let signed = [
            "-CA",
            roots.to_str().unwrap(),
            "-CAkey",
            key.to_str().unwrap(),
        ];
        let named = ["-addext", "subjectAltName=IP:127.0.0.1"];
        let plain = ["-addext", "basicConstraints=critical,CA:FALSE"];
        self.certificate(
            "server",
            "/CN=a test's server",
            &[&signed[..], &named, &plain].concat(),
        );
        let rules = "local all all trust\nhostssl all all 127.0.0.1/32 trust\n";
        fs::write(self.data().join("pg_hba.conf"), rules).unwrap();
        // Free a moment ago; nothing else of a test listens there.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let file = |name: &str| self.path().join(name).display().to_string();
        let options = format!(
            "-c listen_addresses=127.0.0.1 -c port={port} -c ssl=on -c ssl_cert_file={} -c ssl_key_file={} \
             -c unix_socket_directories={} -c fsync=off",
            file("server.crt"),
            file("server.key"),
            self.path().display()
        );
        let (data, log) = (self.data(), self.path().join("server.log"));
        let (data, log) = (data.to_str().unwrap(), log.to_str().unwrap());
        self.tool("pg_ctl", &["stop", "-w", "-s", "-m", "fast", "-D", data]);
        self.port.set(port);
        self.tool(
            "pg_ctl",
            &["start", "-w", "-s", "-D", data, "-l", log, "-o", &options],
        );
        (port, roots)
    }

    /// Makes `NAME.crt` and `NAME.key`.
    fn certificate(&self, name: &str, subject: &str, more: &[&str]) {
        let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
        let words = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            subject,
            "-keyout",
            &key,
            "-out",
            &certificate,
        ];
        let made = Command::new("openssl")
            .args(words)
            .args(more)
            .current_dir(self.path())
            .output();
        let made = made.unwrap_or_else(|_| needs::skip("needs openssl"));
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        if needs::is_root() {
            let (uid, gid) = ids(SERVER).unwrap();
            for file in [certificate, key] {
                chown(self.path().join(file), Some(uid), Some(gid)).unwrap();
            }
        }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Runs one of PostgreSQL's programs; what it printed.
    fn tool(&self, name: &str, words: &[&str]) -> String {
        let program = self.bin.join(name);
        let mut command = if needs::is_root() {
            let mut command = Command::new("setpriv");
            command.args([
                &format!("--reuid={SERVER}"),
                &format!("--regid={SERVER}"),
                "--clear-groups",
            ]);
            command.arg(program);
            command
        } else {
            Command::new(program)
        };
        // pg_ctl leaves a server behind, which would keep a pipe open.
        let out = self.path().join(format!("{name}.out"));
        let file = fs::File::create(&out).unwrap();
        let ended = command
            .args(words)
            .current_dir(self.path())
            .env("PGHOST", self.path())
            .env("PGPORT", self.port.get().to_string())
            .env("PGUSER", OWNER)
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .status()
            .unwrap();
        let said = fs::read_to_string(out).unwrap();
        let log = fs::read_to_string(self.path().join("server.log")).unwrap_or_default();
        assert!(ended.success(), "{name} {words:?}: {said}{log}");
        said
    }

    /// What a query answers, one row a line, columns apart by `|`.
    pub(crate) fn sql(&self, database: &str, query: &str) -> String {
        let words = [
            "-X",
            "-q",
            "-A",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-d",
            database,
            "-c",
            query,
        ];
        self.tool("psql", &words).trim().to_owned()
    }

    /// The address of a database for a user.
    pub(crate) fn address(&self, user: &str, database: &str) -> String {
        let socket: String = form_urlencoded(self.path().to_str().unwrap());
        format!("postgresql://{user}@/{database}?host={socket}")
    }

    /// The owner's address of the database `team`.
    pub(crate) fn team(&self) -> String {
        self.address(OWNER, "team")
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let data = self.data();
        if data.join("postmaster.pid").exists() {
            self.tool(
                "pg_ctl",
                &[
                    "stop",
                    "-w",
                    "-s",
                    "-m",
                    "immediate",
                    "-D",
                    data.to_str().unwrap(),
                ],
            );
        }
    }
}

/// A path as it stands in an address.
fn form_urlencoded(path: &str) -> String {
    path.replace('/', "%2F")
}

/// The programs of the newest version.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir(VERSIONS).ok()?.flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let all = versions.map(|entry| entry.path());
    let newest = all
        .filter(|path| path.join("bin/initdb").exists())
        .max_by_key(|path| number(path))?;
    Some(newest.join("bin"))
}

/// Numbers of a user and of the user's group.
fn ids(name: &str) -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(name))?;
    let mut words = line.split(':').skip(2);
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}
