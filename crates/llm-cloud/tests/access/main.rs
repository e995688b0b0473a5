//! Calls through each cloud's access, over real sockets.

#[cfg(test)]
mod aws;
#[cfg(test)]
mod copilot;
#[cfg(test)]
#[path = "../../../llm/tests/wire_formats/support.rs"]
#[expect(
    dead_code,
    reason = "the scripted server is shared with the tests of the wire formats, which use more of it"
)]
mod support;
#[cfg(test)]
mod vertex;

/// A provider as the program makes it, which finds credentials among `variables`.
#[cfg(test)]
fn cloud_provider(variables: &[(&str, &str)]) -> myclaw_llm::HttpProvider {
    let options = myclaw_llm::HttpOptions {
        variables: variables.iter().copied().collect(),
        ..myclaw_llm::HttpOptions::default()
    };
    myclaw_llm::HttpProvider::new(options).with_access(myclaw_llm_cloud::access())
}
