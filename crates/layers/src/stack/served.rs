//! A share whose server is lost while it is worked on: what waits for the server fails, where it would wait for ever.
//!
//! A client of NFS asks a server that does not answer again and again (nfs(5), `hard`), and no trial would end. A
//! server that was started again has not what it served, so nothing is worth waiting for.

use super::ground::on;
use super::standing::StandingStack;
use stackrace_machine::host::Host;
use stackrace_system::{give_up_on_server, syncfs};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// Interval at which it is looked whether the server is lost, and at which what waits for it is made to fail.
const LOOK: Duration = Duration::from_millis(500);

impl StandingStack {
    /// Does a part of a trial. If the machine that serves the stack is lost meanwhile, what waits for it fails.
    pub fn while_served<T>(&self, host: &dyn Host, work: impl FnOnce() -> T) -> T {
        let served = &self.parts.served;
        if served.mounted_at.is_empty() {
            return work();
        }
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if served.is_lost() || self.has_lost_one(host) {
                        served.lost.store(true, Ordering::Relaxed);
                        let each = served.mounted_at.iter();
                        each.for_each(|point| give_up(point));
                    }
                    std::thread::park_timeout(LOOK);
                }
            });
            // Dropped also when the work panics: the scope waits for the watcher.
            let _over = Over(&over, watcher.thread());
            // As long as it is in use, a share that is given up stays mounted: nothing is written to the
            // directory below it, and what is in memory can be let go first.
            let held: Vec<File> = match served.is_lost() {
                true => Vec::new(),
                false => served.mounted_at.iter().flat_map(File::open).collect(),
            };
            let done = work();
            if served.is_lost() {
                for share in &held {
                    // What the server was not told in time is lost: to say so is the trial's part.
                    let _ = syncfs(share);
                }
            }
            done
        })
    }

    /// Returns true if the way to another machine of the stack broke since it was last asked.
    fn has_lost_one(&self, host: &dyn Host) -> bool {
        let mut others = (2..=self.nodes).filter_map(|node| on(host, node).ok());
        others.any(|other| other.lost().is_some())
    }
}

/// Ends a watch when it is dropped.
struct Over<'a>(&'a AtomicBool, &'a Thread);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// Makes everything fail that waits for the server of a share.
fn give_up(point: &Path) {
    // By the call itself: to start a program means to close our files in it, which waits for the server, too. It
    // says that the share is in use, which it is meant to be.
    let _ = give_up_on_server(point);
}
