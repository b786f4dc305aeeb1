//! The stacks that a kind of layer is tested with: no part of the program.

use crate::foundation::layer::TriedStack;

/// The stacks a kind of layer is tested with.
pub struct Tried {
    /// Stacks that can stand on so many devices: random stacks are put together of these.
    pub on_devices: &'static [(usize, TriedStack)],
    /// Stacks that are set up, used and torn down with the real tools of this machine.
    pub real: &'static [RealStack],
    /// Stacks in which the program is killed at every command, in guests of the lab.
    pub kills: &'static [KillStack],
    /// Programs that change something: it is killed before and after each of them.
    pub changes: &'static [&'static str],
    /// A line for a shell that prints what of such a layer stands; `$places` are options for grep that
    /// find the paths of the test.
    pub standing: &'static str,
}

impl Tried {
    /// No tests at all.
    pub const NOWHERE: Self = Self {
        on_devices: &[],
        real: &[],
        kills: &[],
        changes: &[],
        standing: "",
    };
}

/// One stack on the real machine.
#[derive(Debug, Clone, Copy)]
pub struct RealStack {
    /// The test's name for it.
    pub name: &'static str,
    /// The layers, from the bottom up.
    pub layers: TriedStack,
    /// Beginning of the name of the first block device under its file system; empty if it has none.
    pub device: &'static str,
    /// Facts of a layer, from 0 at the bottom, that must be read back.
    pub expected: &'static [(usize, &'static str, Expected)],
}

/// Condition on a fact.
#[derive(Debug, Clone, Copy)]
pub enum Expected {
    /// Exactly this text.
    Is(&'static str),
    /// A text with these words in it.
    Has(&'static str),
    /// A text without these words in it.
    Lacks(&'static str),
    /// Any text.
    There,
    /// No fact at all.
    Absent,
}

/// One stack in which the program is killed.
#[derive(Debug, Clone, Copy)]
pub struct KillStack {
    /// The test's name for it.
    pub name: &'static str,
    /// Size and number of the disks it stands on; 0 disks if on none.
    pub disks: (&'static str, usize),
    /// Its layers; `{server}` is where a server is: `same`, or `peer` with two machines.
    pub layers: TriedStack,
    /// Numbers of machines it can be set up on.
    pub machines: &'static [usize],
}

impl KillStack {
    /// A stack on one machine.
    pub const fn on_one(
        name: &'static str,
        disks: (&'static str, usize),
        layers: TriedStack,
    ) -> Self {
        Self {
            name,
            disks,
            layers,
            machines: &[1],
        }
    }
}
