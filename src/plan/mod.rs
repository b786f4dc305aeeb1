//! What a study will do, before it does anything.

mod order;

pub(crate) use order::order;
