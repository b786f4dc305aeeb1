//! Working as another user: root's own rights are too much for a program that removes files.

use rustix::fs::{Gid, Uid};
use stackrace_base::unit::InWords;

use stackrace_machine::host::{Host, argv};

/// The user and the group that do the work, as the kernel numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WorkUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Finds a user and a group by name or number, as `getent` knows them. A user by name without a
/// group has his own; one by number has `nogroup`.
///
/// # Errors
/// One of them cannot be found.
pub(super) fn find(host: &dyn Host, user: &str, group: Option<&str>) -> Result<WorkUser, String> {
    let entry = |kind: &str, name: &str| -> Option<Vec<String>> {
        // Not /etc/passwd: users may come from LDAP or another source of nsswitch.conf.
        let output = host.exec(&argv(["getent", kind, name])).ok()?;
        let line = output.stdout.lines().next()?.to_owned();
        let found = output.status == Some(0);
        found.then(|| line.split(':').map(str::to_owned).collect())
    };
    let number = |fields: &[String], at: usize| fields.get(at)?.parse::<u32>().ok();
    let (uid, own) = match user.parse::<u32>() {
        // As in the original: for a number the user's own group is not looked up.
        Ok(uid) => (uid, None),
        Err(_) => {
            let fields = entry("passwd", user).ok_or(format!("Can't find user {user}"))?;
            let uid = number(&fields, 2).ok_or(format!("Can't find user {user}"))?;
            (uid, number(&fields, 3))
        }
    };
    let named = |group: &str| {
        let fields = entry("group", group);
        let gid = fields.and_then(|fields| number(&fields, 2));
        gid.ok_or(format!("Can't find group {group}"))
    };
    let gid = match (group, own) {
        (Some(group), _) => group.parse().or_else(|_| named(group))?,
        (None, Some(own)) => own,
        // bonnie++(8): a user by number without a group works as `nogroup`.
        (None, None) => named("nogroup")?,
    };
    Ok(WorkUser { uid, gid })
}

/// Makes the calling thread, and all it starts, work as another user, for good.
///
/// # Errors
/// The system refused, as it does for a caller without root's rights.
pub(super) fn become_user(who: WorkUser) -> Result<(), String> {
    let (uid, gid) = (Uid::from_raw(who.uid), Gid::from_raw(who.gid));
    // This thread alone. The C library's setuid would change every thread of the process, also the
    // one that keeps root's rights to clean up.
    stackrace_system::work_as(uid, gid).map_err(|errno| {
        let why = errno.in_words();
        format!("cannot work as uid {} and gid {}: {why}", who.uid, who.gid)
    })
}
