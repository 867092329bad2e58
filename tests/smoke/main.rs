//! `smoke`, with browsers that are not there, browsers that misbehave, and a real one.

mod faking;
mod generating;
mod lab;
mod real;
