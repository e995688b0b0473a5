//! The one settings file: its schema, loading, substitution, paths and diagnostics.
//!
//! This room knows where the file is, what may stand in it and how to say what is wrong with it. It must not know what
//! the settings are used for: no model, session, tool or terminal is named here other than by its key. The process
//! environment is read in one place, [`Environment::from_process`]; everything else takes an [`Environment`].
#![forbid(unsafe_code)]

mod agent;
mod dotenv;
mod environment;
mod error;
mod paths;
mod schema;

pub use agent::{AgentId, AgentSettings};
pub use environment::Environment;
pub use error::ConfigError;
pub use paths::{CONFIG_PATH_VARIABLE, HOME_VARIABLE, Paths, STATE_DIR_VARIABLE};
pub use schema::{
    AgentConfig, AgentDefaults, AgentEntry, AgentsConfig, AuthProfile, BashToolConfig,
    ChannelsConfig, ChatId, Config, FsToolConfig, GatewayConfig, IterationCap, LogLevel,
    LoggingConfig, ModelApi, ModelChoice, ModelDefinition, ModelInput, ModelPrice, ModelTimeouts,
    ModelsConfig, PrimaryModel, ProviderConfig, ProviderModels, TelegramConfig, ToolsConfig,
};
pub use secrecy::{ExposeSecret, SecretString};
