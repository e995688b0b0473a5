//! Where the vectors of each agent's notes are kept.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use myclaw_config::{Paths, ResolvedAgent};
use myclaw_embed::{KeepVectors, MemoryVectors, VectorFile};
use parking_lot::Mutex;

/// Name of the file in the agent's own directory.
const FILE: &str = "memory-vectors.json";

/// Gives the vectors of agents.
pub trait VectorStores: fmt::Debug + Send + Sync {
    /// Those of an agent.
    fn of_agent(&self, agent: &ResolvedAgent) -> Arc<dyn KeepVectors>;
}

/// Files in the directories of the agents.
#[derive(Debug)]
pub(crate) struct VectorFiles(pub(crate) Paths);

impl VectorStores for VectorFiles {
    fn of_agent(&self, agent: &ResolvedAgent) -> Arc<dyn KeepVectors> {
        let directory = agent.agent_dir.clone();
        let directory = directory.unwrap_or_else(|| self.0.agent_dir(&agent.id));
        Arc::new(VectorFile(directory.join(FILE)))
    }
}

/// Vectors that end with the process, by the agents' ids.
#[derive(Debug, Default)]
pub(crate) struct VectorsInMemory(Mutex<HashMap<String, Arc<MemoryVectors>>>);

impl VectorStores for VectorsInMemory {
    fn of_agent(&self, agent: &ResolvedAgent) -> Arc<dyn KeepVectors> {
        let id = agent.id.to_string();
        let mut known = self.0.lock();
        let vectors = Arc::new(MemoryVectors::new(&format!("vectors-{id}")));
        Arc::clone(known.entry(id).or_insert(vectors)) as Arc<dyn KeepVectors>
    }
}
