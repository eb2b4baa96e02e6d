//! Redis in trouble, one kind after another. Whatever is wrong, a decision ends in time, is an error or right, charges at most
//! once, and tells nobody a secret; and when it is over decisions are right again, and soon.

mod access;
mod delay;
mod errors;
mod failover;
mod loss;
mod network;
mod scene;
mod silence;
mod starved;
