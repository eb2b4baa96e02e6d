//! The commands that read logs.

mod command;
mod planted;
mod simulate;
mod suggest;
mod suggested;
mod verify;
