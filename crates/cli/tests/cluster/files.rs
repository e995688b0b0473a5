//! The files of packaging/cluster: they can be read, the program accepts the configs in them, and they say what must hold.

use std::path::PathBuf;
use std::process::Command;

use super::*;

/// The documents of a file; `None` without a Python that reads YAML.
fn documents(name: &str) -> Option<Vec<Value>> {
    let Some(python) = std::env::var_os("MYCLAW_SYNAPSE_PYTHON") else {
        myclaw_testkit::skip_without("MYCLAW_SYNAPSE_PYTHON is not set; scripts/test sets it");
        return None;
    };
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../packaging/cluster").join(name);
    let script =
        "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))";
    let output = Command::new(python).args(["-c", script]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// The program takes this config, once the files of its certificate are there.
fn assert_accepted(config: &str, variables: &Value) {
    let home = TempHome::new();
    home.write_config_text(config);
    let mut command = home.command(env!("CARGO_BIN_EXE_myclaw"));
    command.args(["config", "check"]);
    for (name, value) in variables.as_object().unwrap() {
        if name != "MYCLAW_CONFIG_PATH" {
            command.env(name, value.as_str().unwrap_or("sk-ant-test"));
        }
    }
    RunningChild::run(&mut command).assert_code(0);
}

#[test]
fn the_manifest_for_kubernetes_fits_the_program() {
    let Some(all) = documents("kubernetes.yaml") else { return };
    let of_kind = |kind: &str| all.iter().find(|document| document["kind"] == kind).unwrap();
    let (deployment, service) = (of_kind("Deployment"), of_kind("Service"));
    let pod = &deployment["spec"]["template"];
    let container = &pod["spec"]["containers"][0];
    let config = of_kind("ConfigMap")["data"]["myclaw.json"].as_str().unwrap();
    let secrets = json!({
        "MYCLAW_GATEWAY_TOKEN": "t".repeat(40), "MYCLAW_STORE_URL": "postgresql://db/x", "ANTHROPIC_API_KEY": "k",
    });
    assert_accepted(config, &secrets);
    let parsed: Value = serde_json::from_str(config).unwrap();
    assert_eq!(container["ports"][0]["containerPort"], parsed["gateway"]["port"]);
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/ready");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/health");
    let mounts = container["volumeMounts"].as_array().unwrap();
    let of_certificate = mounts.iter().find(|mount| mount["name"] == "tls").unwrap();
    let directory = of_certificate["mountPath"].as_str().unwrap();
    assert_eq!(parsed["gateway"]["tls"]["cert"], format!("{directory}/tls.crt"));
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    for mount in mounts {
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }
    // A node gives its sessions away before it is killed.
    let pause = container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap();
    let grace = pod["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap();
    assert!(grace >= pause + 30, "{grace} s");
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    for selector in [
        &service["spec"]["selector"],
        &deployment["spec"]["selector"]["matchLabels"],
        &of_kind("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
    ] {
        assert_eq!(*selector, pod["metadata"]["labels"]);
    }
    assert_eq!(service["spec"]["ports"][0]["targetPort"], container["ports"][0]["name"]);
}

#[test]
fn the_compose_file_fits_the_program() {
    let Some(all) = documents("compose.yaml") else { return };
    let (file, gateway) = (&all[0], &all[0]["services"]["gateway"]);
    let config = file["configs"]["myclaw"]["content"].as_str().unwrap().replace("$$", "$");
    assert_accepted(&config, &gateway["environment"]);
    assert_eq!(gateway["configs"][0]["target"], gateway["environment"]["MYCLAW_CONFIG_PATH"]);
    assert_eq!(gateway["deploy"]["replicas"], 3);
    assert_eq!(gateway["stop_grace_period"], "30s");
    let address = gateway["environment"]["MYCLAW_STORE_URL"].as_str().unwrap();
    assert!(address.contains("@database/") && !file["services"]["database"].is_null(), "{address}");
    assert_eq!(gateway["depends_on"]["database"]["condition"], "service_healthy");
}

#[test]
fn the_settings_of_patroni_lose_nothing() {
    let Some(all) = documents("patroni.yaml") else { return };
    let shared = &all[0]["bootstrap"]["dcs"];
    for key in ["synchronous_mode", "synchronous_mode_strict"] {
        assert_eq!(shared[key], true, "{key}");
    }
    assert_eq!(shared["maximum_lag_on_failover"], 0);
    for key in ["synchronous_commit", "fsync", "full_page_writes"] {
        assert_eq!(shared["postgresql"]["parameters"][key], "on", "{key}");
    }
    let page = include_str!("../../../../docs/operate/cluster.md");
    assert!(page.contains("packaging/cluster/patroni.yaml"));
}
