//! What the config has made: the agents, and the skills that each of them has.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use myclaw_agent::permissions::{Permissions, known_tools, sandbox_rules};
use myclaw_agent::{SessionConfig, SessionOptions, skills::FoundSkill};
use myclaw_config::{AgentId, Config};
use myclaw_session::SessionError;
use myclaw_skills::SkillOrigin;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Server;
use super::request::Params;
use crate::GatewayError;

/// The paths of this module.
pub(super) fn routes() -> Router<Arc<Server>> {
    Router::new().route("/api/agents", get(agents)).route("/api/skills", get(skills))
}

#[derive(Deserialize)]
struct WhoseSkills {
    /// The agent's id; the default one if it is missing.
    agent: Option<String>,
}

/// The sessions of an agent.
#[derive(Clone, Copy, Default)]
struct Sessions {
    count: u64,
    last_used_at: u64,
}

async fn agents(State(server): State<Arc<Server>>) -> Result<Json<Value>, GatewayError> {
    let sessions = server
        .with_sessions(|catalog| {
            let mut found: HashMap<String, Sessions> = HashMap::new();
            catalog.each(|session| {
                let of_agent = found.entry(session.key.parts().agent_id).or_default();
                of_agent.count += 1;
                of_agent.last_used_at = of_agent.last_used_at.max(session.entry.updated_at);
                Ok::<_, SessionError>(ControlFlow::Continue(()))
            })?;
            Ok(found)
        })
        .await?;
    let config = server.delivery.config();
    let mut ids = config.agent_ids();
    ids.sort();
    let mut agents = Vec::with_capacity(ids.len());
    for id in &ids {
        let sessions = sessions.get(id.as_str()).copied().unwrap_or_default();
        agents.push(describe(&server, &config, id, sessions).await?);
    }
    Ok(Json(json!({"agents": agents})))
}

async fn describe(
    server: &Server,
    config: &Arc<Config>,
    id: &AgentId,
    sessions: Sessions,
) -> Result<Value, GatewayError> {
    let main = main_session(server, config, Some(id.as_str()))?;
    let agent = &main.agent;
    let entry = config.agents.list.iter().find(|entry| AgentId::new(&entry.id) == *id);
    let profile = entry.and_then(|entry| entry.tools.profile).or(config.tools.profile);
    let tools = match Permissions::new(&main, agent.model.as_deref(), &[]) {
        Ok(rules) => {
            json!(known_tools().iter().filter(|tool| rules.offers(tool)).collect::<Vec<_>>())
        }
        Err(_) => Value::Null,
    };
    let sandbox = sandbox_rules(config, agent);
    let skills = main.read_skills().await?.skills;
    let subagents = config.subagents(id);
    let others = config.agent_ids().into_iter().filter(|one| one != id);
    let may_start = others.filter(|one| subagents.allows_agent(id, one));
    let bindings = config.bindings.iter().filter(|one| AgentId::new(&one.agent_id) == *id);
    Ok(json!({
        "id": id.as_str(),
        "name": agent.name,
        "isDefault": *id == config.default_agent_id(),
        "model": agent.model,
        "fallbacks": agent.fallbacks,
        "workspace": agent.workspace,
        "profile": profile,
        "tools": tools,
        "sandbox": sandbox.mode,
        "sandboxLevel": sandbox.confinement.level.unwrap_or_default(),
        "sandboxNetwork": sandbox.confinement.network.unwrap_or_default(),
        "identity": config.persona(id).identity,
        "subagents": {
            "mayStart": may_start.map(|one| one.as_str().to_owned()).collect::<Vec<_>>(),
            "model": subagents.model,
            "maxDepth": subagents.max_depth,
            "maxChildren": subagents.max_children,
        },
        "skills": skills.len(),
        "usableSkills": skills.iter().filter(|skill| skill.is_offered()).count(),
        "bindings": bindings.map(|one| &one.matches).collect::<Vec<_>>(),
        "heartbeatSeconds": config.heartbeat(id).map(|heartbeat| heartbeat.every.as_secs()),
        "mainSession": main.session_key.as_str(),
        "sessions": sessions.count,
        "lastUsedAt": (sessions.last_used_at > 0).then_some(sessions.last_used_at),
    }))
}

async fn skills(
    State(server): State<Arc<Server>>,
    Params(whose): Params<WhoseSkills>,
) -> Result<Json<Value>, GatewayError> {
    let session = main_session(&server, &server.delivery.config(), whose.agent.as_deref())?;
    let found = session.read_skills().await?;
    let skill = |found: &FoundSkill| {
        let origin = match found.skill.origin {
            SkillOrigin::Owner => "owner",
            SkillOrigin::Package => "package",
            SkillOrigin::Workspace => "workspace",
        };
        json!({
            "name": found.skill.name,
            "description": found.skill.description,
            "path": found.skill.file,
            "origin": origin,
            "enabled": !found.is_disabled,
            "usable": found.is_offered(),
            "obstacles": found.obstacles,
        })
    };
    let problem = |problem: &myclaw_skills::Problem| json!({"path": problem.path, "message": problem.message});
    Ok(Json(json!({
        "agent": session.agent.id.as_str(),
        "skills": found.skills.iter().map(skill).collect::<Vec<_>>(),
        "problems": found.problems.iter().map(problem).collect::<Vec<_>>(),
    })))
}

pub(super) fn main_session(
    server: &Server,
    config: &Arc<Config>,
    agent: Option<&str>,
) -> Result<SessionConfig, GatewayError> {
    let options = SessionOptions { agent: agent.map(str::to_owned), ..SessionOptions::default() };
    let home = server.delivery.home();
    Ok(SessionConfig::new(home, Arc::clone(config), &options)?)
}
