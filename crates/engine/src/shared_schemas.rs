//! Schemas of tools that depend on a few values.

use std::sync::Arc;

use myclaw_llm::ToolSchema;
use parking_lot::Mutex;

/// Most schemas that are kept.
const MOST: usize = 16;

/// The schemas of a tool by what they depend on. Each is made once and shared by all sessions of a process, because a schema
/// is a tree of several kilobytes, and a gateway has thousands of sessions.
pub struct SharedSchemas<K> {
    made: Mutex<Vec<(K, Arc<ToolSchema>)>>,
}

impl<K: PartialEq> SharedSchemas<K> {
    /// None yet.
    pub const fn new() -> Self {
        Self { made: Mutex::new(Vec::new()) }
    }

    /// The schema for `key`, which `make` makes of it if it is not there. The oldest gives way when there are more than 16.
    pub fn get(&self, key: K, make: impl FnOnce(&K) -> ToolSchema) -> Arc<ToolSchema> {
        let mut made = self.made.lock();
        if let Some((_, schema)) = made.iter().find(|(known, _)| *known == key) {
            return Arc::clone(schema);
        }
        if made.len() == MOST {
            made.remove(0);
        }
        let schema = Arc::new(make(&key));
        made.push((key, Arc::clone(&schema)));
        schema
    }
}

impl<K: PartialEq> Default for SharedSchemas<K> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schema_is_made_once_and_the_number_is_bounded() {
        let schemas = SharedSchemas::new();
        let of = |key: usize| {
            schemas.get(key, |key| ToolSchema {
                name: key.to_string(),
                description: String::new(),
                parameters: serde_json::json!({}),
            })
        };
        assert!(Arc::ptr_eq(&of(1), &of(1)));
        assert_eq!(of(2).name, "2");
        for key in 3..=MOST + 1 {
            of(key);
        }
        assert_eq!(schemas.made.lock().len(), MOST);
        assert!(schemas.made.lock().iter().all(|(key, _)| *key != 1), "the oldest is kept");
    }
}
