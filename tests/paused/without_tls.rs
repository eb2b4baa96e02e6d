//! URLs with TLS, without the feature `tls`.

use ratelimits::{Error, Registry};

#[test]
fn tls_urls_are_refused_with_the_feature_name() {
    for url in ["rediss://:secret@localhost", "rediss+sentinel://one/limits", "rediss+cluster://one,two"] {
        let error = Registry::connect_lazy(url).unwrap_err();
        assert!(matches!(error, Error::Store(_)), "{url}");
        assert!(error.to_string().contains("the feature `tls`"), "{url}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
