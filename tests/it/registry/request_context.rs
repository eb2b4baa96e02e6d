//! Keys of the request context, on both stores.

use std::net::IpAddr;

use ratelimits::error::MissingKey;
use ratelimits::{Error, RequestContext, count_limit};

use crate::support::registries::on_each_registry;

#[count_limit(1, "1m", key_type = IP)]
pub(super) async fn by_ip() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", key = "<@user_or_ip>")]
async fn by_user_or_ip() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn request_context_keys() {
    on_each_registry(async |registry, _| {
        let from = |ip: &str| RequestContext::new().with_ip(ip.parse::<IpAddr>().unwrap());
        let call = |context: RequestContext| registry.scope(context.scope(by_ip()));
        call(from("2001:db8::1")).await.unwrap();
        assert!(call(from("2001:db8::2")).await.unwrap_err().is_limited());
        call(from("2001:db8:0:1::2")).await.unwrap();
        call(from("192.0.2.1")).await.unwrap();
        assert!(call(from("::ffff:192.0.2.1")).await.unwrap_err().is_limited());
        let missing = registry.scope(by_ip()).await.unwrap_err();
        assert!(matches!(missing, Error::MissingKey(MissingKey::Ip)), "{missing}");

        let call = |context: RequestContext| registry.scope(context.scope(by_user_or_ip()));
        call(from("192.0.2.1")).await.unwrap();
        call(RequestContext::new().with_user("192.0.2.1")).await.unwrap();
        call(from("192.0.2.1").with_user("ann")).await.unwrap();
        assert!(call(from("192.0.2.9").with_user("ann")).await.unwrap_err().is_limited());
        assert!(call(from("192.0.2.1")).await.unwrap_err().is_limited());
    })
    .await;
}

#[count_limit(1, "1m", key_type = USER)]
async fn by_user() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn blank_users_are_missing() {
    on_each_registry(async |registry, _| {
        for blank in ["", " ", "\t\r\n", "\u{a0}\u{3000}"] {
            let context = || RequestContext::new().with_user("ann").with_user(blank);
            let refused = registry.scope(context().scope(by_user())).await.unwrap_err();
            assert!(matches!(refused, Error::MissingKey(MissingKey::User)), "{blank:?}: {refused}");
            let refused = registry.scope(context().scope(by_user_or_ip())).await.unwrap_err();
            assert!(matches!(refused, Error::MissingKey(MissingKey::Ip)), "{blank:?}: {refused}");
        }
        // Without a user it counts by address.
        let from = |ip: [u8; 4]| RequestContext::new().with_user(" ").with_ip(ip).scope(by_user_or_ip());
        registry.scope(from([192, 0, 2, 1])).await.unwrap();
        registry.scope(from([192, 0, 2, 2])).await.unwrap();
        assert!(registry.scope(from([192, 0, 2, 1])).await.unwrap_err().is_limited());
        // A user is used as written.
        for user in ["ann", " ann", "ann "] {
            registry.scope(RequestContext::new().with_user(user).scope(by_user())).await.unwrap();
        }
    })
    .await;
}
