//! A server that does not let us in any more, or not do what it takes.

use ratelimit_runtime::store::RedisStore;

use super::errors::refused;
use super::scene::{Caller, PASSWORD, Scene, USER};

async fn set_user(scene: &Scene, specs: &[&str]) {
    scene.operate::<()>(&[&["ACL", "SETUSER", USER], specs].concat()).await;
}

#[tokio::test]
async fn wrongpass_where_the_password_has_changed() {
    let scene = Scene::set().await;
    let begin = async || {
        set_user(&scene, &["resetpass", ">another-one"]).await;
        scene.kill_clients().await;
    };
    let password = format!(">{PASSWORD}");
    refused(&scene, "WRONGPASS", begin, async || set_user(&scene, &[&password]).await).await;
    scene.has_one_connection().await;
}

#[tokio::test]
async fn noauth_where_a_password_is_asked_for_of_late() {
    let mut scene = Scene::set().await;
    // Where nobody asks, none is given.
    let caller = Caller::of(&scene.proxy.url(), RedisStore::DEADLINE);
    scene.is_asked_by(caller).await;
    let begin = async || {
        scene.configure("requirepass", "another-one").await;
        scene.kill_clients().await;
    };
    refused(&scene, "NOAUTH", begin, async || scene.configure("requirepass", "").await).await;
}

#[tokio::test]
async fn noperm_where_scripts_are_forbidden() {
    let scene = Scene::set().await;
    let begin = async || set_user(&scene, &["-evalsha", "-eval"]).await;
    refused(&scene, "NOPERM", begin, async || set_user(&scene, &["+@all"]).await).await;
}

#[tokio::test]
async fn noperm_where_a_script_may_not_write() {
    let scene = Scene::set().await;
    let begin = async || set_user(&scene, &["-@write", "+evalsha", "+eval"]).await;
    refused(&scene, "MAY NOT RUN", begin, async || set_user(&scene, &["+@all"]).await).await;
}

#[tokio::test]
async fn noperm_where_the_keys_are_somebody_elses() {
    let scene = Scene::set().await;
    let begin = async || set_user(&scene, &["resetkeys", "~other:*"]).await;
    refused(&scene, "NOPERM", begin, async || set_user(&scene, &["~*"]).await).await;
}
