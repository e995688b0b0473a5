use super::*;

#[test]
fn a_location_has_its_host() {
    let variables = |location: &str| Variables::from_iter([("GOOGLE_CLOUD_LOCATION", location)]);
    for (base_url, set, expected) in [
        (
            "https://aiplatform.googleapis.com",
            "",
            "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google",
        ),
        (
            "https://aiplatform.googleapis.com/v1beta1/",
            "europe-west4",
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4/publishers/google",
        ),
        (
            "https://aiplatform.googleapis.com",
            "eu",
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google",
        ),
        (
            "https://us-central1-aiplatform.googleapis.com",
            "europe-west4",
            "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google",
        ),
        (
            "https://aiplatform.us.rep.googleapis.com",
            "",
            "https://aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/publishers/google",
        ),
        (
            "https://proxy.example/vertex/v1",
            "asia-east1",
            "https://proxy.example/vertex/v1/projects/p/locations/asia-east1/publishers/google",
        ),
        (
            "https://proxy.example/v1/projects/own/locations/own",
            "asia-east1",
            "https://proxy.example/v1/projects/own/locations/own/publishers/google",
        ),
        (
            "https://proxy.example/v1/publishers/google",
            "asia-east1",
            "https://proxy.example/v1/publishers/google",
        ),
    ] {
        let location = location(base_url, &variables(set));
        assert_eq!(address(base_url, Some("p"), &location).unwrap(), expected, "{base_url}");
    }
}

#[test]
fn an_api_key_needs_no_project() {
    assert_eq!(
        address("https://aiplatform.googleapis.com", None, GLOBAL).unwrap(),
        "https://aiplatform.googleapis.com/v1/publishers/google"
    );
    let error = address("aiplatform", None, GLOBAL).unwrap_err();
    assert!(error.message.starts_with("the base URL is not usable: "), "{error}");
}
