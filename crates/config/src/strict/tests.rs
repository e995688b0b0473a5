use serde_json::json;

use super::*;

#[test]
fn the_innermost_value_that_does_not_fit_is_named() {
    for (tree, expected) in [
        (json!({"agents": {"list": [{"id": "a"}, {"id": 7}]}}), "agents.list[1].id"),
        (json!({"agents": {"list": [{"id": "a"}, {}]}}), "agents.list[1]"),
        (json!({"agents": {"defaults": {"model": null}}}), "agents.defaults.model"),
        (json!({"gateway": []}), "gateway"),
        (json!({"logging": {"level": "loud"}}), "logging.level"),
        (json!({"nobody": 1}), ConfigPath::default().to_string().as_str()),
    ] {
        let misfit = typed(&tree).unwrap_err();
        assert_eq!(misfit.path.to_string(), expected, "{tree}: {}", misfit.error);
    }
}

#[test]
fn a_tree_that_fits_is_read() {
    assert!(typed(&json!({"agents": {"list": [{"id": "a"}]}})).is_ok());
}
