//! `stackrace clean`: what dead runs left behind is removed, here or on other machines.

use super::args::Clean;
use super::failure::{self, Failure};
use super::on;
use super::setting::Setting;
use super::terminal::print;
use crate::session::clean::{self, Cleaned};

/// `stackrace clean`.
pub(super) fn exec(setting: &Setting, verb: Clean) -> Result<u8, Failure> {
    if !verb.there.on.is_empty() || !verb.there.peers.is_empty() {
        return on::clean(setting, &verb);
    }
    let cleaned = clean::clean(&setting.session, verb.list)?;
    let text: String = cleaned.iter().map(line).collect();
    print(match &*text {
        "" => "nothing to clean\n",
        text => text,
    });
    let left = cleaned.iter().any(Cleaned::is_left);
    Ok(if left { failure::UNABLE } else { 0 })
}

fn line(cleaned: &Cleaned) -> String {
    match cleaned {
        Cleaned::Listed(what) => format!("would undo: {what}\n"),
        Cleaned::Undone(what) => format!("undone: {what}\n"),
        Cleaned::Failed(what, why) => format!("not undone: {what}: {why}\n"),
        Cleaned::Skipped(why) => format!("left alone: {why}\n"),
        Cleaned::Busy(path, command) => format!(
            "left alone: {} as `{command}` is still running\n",
            path.display()
        ),
    }
}
