//! Models of storage devices, evaluated in virtual time.
//!
//! A model answers one question: *when does this request complete?* It is a pure function of the
//! requests it was given and their instants. It holds no data, does no I/O, and reads no clock, so
//! the same requests give the same completions on every machine.
//!
//! A caller drives a model as a discrete-event simulation: [`Drive::submit`] hands over a request,
//! [`Drive::next_event`] says when something happens next, and [`Drive::complete`] returns what has
//! completed by then.
#![forbid(unsafe_code)]

mod caching;
mod card;
mod cards;
mod completions;
mod controller;
mod disk;
mod extents;
mod fault;
mod line;
pub mod measure;
mod origin;
pub mod power;
mod request;
mod scatter;
mod smr;
mod ssd;
pub mod trace;
mod volume;

pub use caching::Caching;
pub use card::{CardError, CardOverheads, DiskCard, Layout, Origin, Seek, Shingled, Stated};
pub use cards::{
    ArrayCard, AskedCard, CARDS, Card, CardValue, Claim, DriveIdentity, Load, SsdCard, VolumeCard,
};
pub use controller::{ArrayLayout, Controller, ControllerError, ControllerParameters};
pub use disk::{
    BufferRules, Cache, Disk, DiskParameters, Fetched, Geometry, GeometryError, Overheads,
    ReadAheadAfter, ReadAheadUntil, SeekCurve, SeekError, Written, Zone,
};
pub use fault::{Fault, Faulty};
pub use line::{Line, LineError};
pub use request::{Completion, Drive, DriveError, Nanos, Operation, Request, SECTOR};
pub use scatter::scattered;
pub use smr::{Smr, SmrError, SmrParameters};
pub use ssd::{MAPPING_UNIT, Ssd, SsdError, SsdParameters};
pub use volume::{Volume, VolumeError, VolumeParameters};
