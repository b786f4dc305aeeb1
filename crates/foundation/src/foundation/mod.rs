//! What a layer is, and what layers share: reading `/sys`, the guard of disks, formatting, options, shares, the line
//! between machines.
//!
//! Nothing here knows a layer by its name. The guard stands here, so that one place decides for all layers what
//! may be written over.

pub mod assembled;
pub mod block;
pub mod cached;
pub mod config_tree;
mod cut;
mod error;
pub mod filesystem;
pub mod gives;
pub mod guard;
mod identity;
mod inspection;
pub mod lasting;
mod layer;
pub mod lent;
pub mod line;
pub mod one_kernel;
pub mod options;
pub mod parameter;
pub mod parts;
pub mod place;
pub mod plain;
mod setup;
pub mod share;
mod site;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod words;

pub use cut::CutOf;
pub use error::{LayerError, StackError};
pub use gives::{
    Bare, Below, DEVICES_MAX, Danger, Device, Gives, GivesKind, Origin, Pool, StandingLayer, Takes,
};
pub use identity::Identity;
pub use inspection::Inspection;
pub use layer::{
    FileData, LaidOutData, Layer, LayerCommand, LayerKind, ON_A_DISK, ON_TWO_DISKS, StorageClaim,
    TriedStack,
};
pub use parts::{Mounted, Movable, StackParts};
pub use setup::{Memory, Setup};
pub use site::Site;
#[cfg(any(test, feature = "testing"))]
pub use testing::{Expected, KillStack, RealStack, Tried};
