//! What every http client of this process agrees on: certificates and proxies, as the system and the
//! environment have them.

use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::{Proxy, http};

/// TLS of the system, with its certificates.
pub(in crate::exec) fn tls() -> TlsConfig {
    TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(RootCerts::PlatformVerifier).build()
}

/// The proxy for `url`. This machine is not behind its own.
pub(in crate::exec) fn proxy(url: &str) -> Option<Proxy> {
    if is_loopback(url) { None } else { Proxy::try_from_env() }
}

/// Whether `url` leads to this host over its loopback interface.
pub(in crate::exec) fn is_loopback(url: &str) -> bool {
    let uri: Option<http::Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_not_asked_through_a_proxy() {
        for url in ["http://127.0.0.1:8000/a", "http://localhost/a", "http://[::1]:80/"] {
            assert!(is_loopback(url), "{url}");
        }
        assert!(!is_loopback("https://localhost.example/a"));
    }
}
