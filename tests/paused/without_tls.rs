//! TLS that is not built in. Most other tests are run with it.

use ratelimits::{Error, Registry};

#[test]
fn a_url_with_tls_is_refused_by_the_name_of_the_feature() {
    for url in ["rediss://:secret@localhost", "rediss+sentinel://one/limits", "rediss+cluster://one,two"] {
        let error = Registry::connect_lazy(url).unwrap_err();
        assert!(matches!(error, Error::Store(_)), "{url}");
        assert!(error.to_string().contains("the feature `tls`"), "{url}: {error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }
}
