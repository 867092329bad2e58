//! The time of day. Only the journal and what is derived from it hold times.

/// Now, as RFC 3339 in UTC with whole seconds.
#[expect(clippy::disallowed_methods, reason = "this is the one place that asks for the time of day")]
pub fn now() -> String {
    let now = jiff::Timestamp::try_from(std::time::SystemTime::now()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}
