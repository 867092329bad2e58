//! The executor through the library: plans made by hand, real commands and none at all.

mod lab;
mod order;
mod plans;
mod steps;
