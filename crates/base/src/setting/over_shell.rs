//! Layers and workloads where nothing of this program is.

// Here because the packages of layers and of workloads do not know each other.
/// The way to have a layer or a workload on a machine that has nothing of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverShell {
    /// It needs nothing but what that machine has itself.
    Runs,
    /// Something there does about the same: the setting of a study.
    Nearest(&'static str),
    /// Nothing there does the same.
    Never,
}
