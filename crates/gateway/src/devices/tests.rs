//! Tests of several gateways on one store.

use std::sync::Arc;

use myclaw_store::{MemoryStore, Store};

use super::*;

/// How long one may take to see what the other one did.
const PATIENCE: Duration = Duration::from_secs(10);

async fn of(store: &Arc<dyn Store>) -> Arc<Devices> {
    let devices = Devices::load(Ledger::new(Arc::clone(store))).await.expect("devices");
    let devices = Arc::new(devices);
    let following = Arc::clone(&devices);
    tokio::spawn(async move { following.follow().await });
    devices
}

/// A new device that the first gateway lets in: its id and its token.
async fn let_in(devices: &Devices) -> (String, String) {
    let code = devices.new_code(Scope::Operator).expect("a code");
    let paired =
        devices.pair(code["code"].as_str().expect("a code"), "phone").await.expect("paired");
    let text = |name: &str| paired[name].as_str().expect("a text").to_owned();
    devices.change(DeviceChange::Approve, &text("id")).await.expect("approved");
    (text("id"), text("token"))
}

/// Waits until a gateway knows the token.
async fn login(devices: &Devices, token: &str) -> Login {
    let known = async {
        loop {
            match devices.who(token) {
                Known::Device(login) => return login,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, known).await.expect("the other gateway does not know it")
}

#[tokio::test]
async fn what_one_gateway_decides_about_a_device_holds_at_the_other() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (one, other) = (of(&store).await, of(&store).await);
    for change in [DeviceChange::Revoke, DeviceChange::Rotate] {
        let (id, token) = let_in(&one).await;
        let there = login(&other, &token).await;
        assert!(!there.gone.is_cancelled());
        let (_, shown) = one.change(change, &id).await.expect("changed");
        let cut = tokio::time::timeout(PATIENCE, there.gone.cancelled()).await;
        assert!(cut.is_ok(), "{change:?} does not cut the device off at the other gateway");
        assert!(matches!(other.who(&token), Known::Nobody), "{change:?} leaves the token valid");
        if let Some(new) = shown["token"].as_str() {
            login(&other, new).await;
        }
    }
}

#[tokio::test]
async fn a_change_under_an_old_version_is_decided_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    // Nobody follows, so the second one has not seen what the first one did.
    let [one, other] = [0, 1].map(|_| Ledger::new(Arc::clone(&store)));
    let one = Devices::load(one).await.expect("devices");
    let code = one.new_code(Scope::Operator).expect("a code");
    let paired = one.pair(code["code"].as_str().expect("a code"), "phone").await.expect("paired");
    let id = paired["id"].as_str().expect("an id");
    let other = Devices::load(other).await.expect("devices");
    one.change(DeviceChange::Approve, id).await.expect("approved");
    let again = other.change(DeviceChange::Approve, id).await.expect_err("approved twice");
    assert!(again.to_string().contains("is approved already"), "{again}");
    other.change(DeviceChange::Rotate, id).await.expect("rotated");
    one.change(DeviceChange::Revoke, id).await.expect("revoked");
    let gone = other.change(DeviceChange::Rotate, id).await.expect_err("rotated after its end");
    assert!(matches!(gone, GatewayError::NotFound(_)), "{gone}");
}
