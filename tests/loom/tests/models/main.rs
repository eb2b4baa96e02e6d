//! What threads see of each other's decisions, in every interleaving. The models have few threads that do little, so that
//! there are few.

mod charges;
mod in_place;
mod refunds;
mod slots;
mod support;
