//! The pages as readers get them, from a store with recorded runs.

mod live;
mod network;
mod pages;
mod safety;
mod sizes;
mod world;
