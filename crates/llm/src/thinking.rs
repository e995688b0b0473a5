//! How much a model is asked to think before it answers.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Model;
use crate::wire::{Off, ThinkingControl};

/// How much a model should think before it answers. Each provider has its own words and numbers for it. Which levels a
/// model offers, and under which names, is data ([`ThinkingLevels`]).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ThinkingLevel {
    /// Answers at once.
    Off,
    /// The least a model can be asked for.
    Minimal,
    /// A little.
    Low,
    /// Some.
    Medium,
    /// Much.
    #[default]
    High,
    /// The most.
    Xhigh,
}

impl ThinkingLevel {
    /// Every level, from the least to the most.
    pub const ALL: [Self; 6] =
        [Self::Off, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh];

    /// The name in the config, in commands and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A word that is not a thinking level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a thinking level: use off, minimal, low, medium, high or xhigh")]
pub struct UnknownThinkingLevel(pub String);

impl FromStr for ThinkingLevel {
    type Err = UnknownThinkingLevel;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.as_str().eq_ignore_ascii_case(word.trim()))
            .ok_or_else(|| UnknownThinkingLevel(word.to_owned()))
    }
}

/// How a model of Claude's wire formats is asked to think. Other formats have one way each and ignore it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThinkingForm {
    /// With a number of tokens that it may spend; models up to Claude 4.5.
    #[default]
    Budget,
    /// With an effort; the model decides how much it thinks. It may think by default, so `off` is sent too.
    Adaptive,
    /// As [`ThinkingForm::Adaptive`], and its thinking is valid only after the same messages that preceded it. If some
    /// of these were compacted or cut since, the thinking is invalid, and the request asks the API to ignore it.
    BoundAdaptive,
}

impl ThinkingForm {
    /// The name in the catalog and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Adaptive => "adaptive",
            Self::BoundAdaptive => "bound-adaptive",
        }
    }
}

/// The levels that a model offers, each with the provider's word for it. A level without a word uses its own name; a
/// level that is not listed is not offered. An empty list means `off` to `high`, each by its own name. Serialised as a
/// map from level to word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    from = "BTreeMap<ThinkingLevel, Option<String>>",
    into = "BTreeMap<ThinkingLevel, Option<String>>"
)]
pub struct ThinkingLevels(Vec<(ThinkingLevel, Option<String>)>);

impl From<BTreeMap<ThinkingLevel, Option<String>>> for ThinkingLevels {
    fn from(levels: BTreeMap<ThinkingLevel, Option<String>>) -> Self {
        Self::new(levels)
    }
}

impl From<ThinkingLevels> for BTreeMap<ThinkingLevel, Option<String>> {
    fn from(levels: ThinkingLevels) -> Self {
        levels.0.into_iter().collect()
    }
}

impl ThinkingLevels {
    /// Levels with the provider's word for each that differs from ours.
    pub fn new(levels: impl IntoIterator<Item = (ThinkingLevel, Option<String>)>) -> Self {
        Self(levels.into_iter().collect())
    }

    /// Whether the provider's words are listed.
    pub(crate) fn has_words(&self) -> bool {
        self.0.iter().any(|(_, word)| word.is_some())
    }

    /// Whether a level above `off` has a word other than its own name.
    pub(crate) fn has_own_words(&self) -> bool {
        self.0.iter().any(|(level, word)| {
            *level != ThinkingLevel::Off
                && word.as_deref().is_some_and(|word| word != level.as_str())
        })
    }

    /// Whether no more than one level above `off` is listed.
    pub(crate) fn is_switch(&self) -> bool {
        self.0.iter().filter(|(level, _)| *level != ThinkingLevel::Off).count() <= 1
    }

    fn lists(&self, level: ThinkingLevel) -> bool {
        match self.0.is_empty() {
            true => level <= ThinkingLevel::High,
            false => self.0.iter().any(|(listed, _)| *listed == level),
        }
    }

    /// The other listed level whose name is the word for `level`.
    fn alias_of(&self, level: ThinkingLevel) -> Option<ThinkingLevel> {
        let (_, word) = self.0.iter().find(|(listed, _)| *listed == level)?;
        let named = word.as_deref()?.parse().ok()?;
        (named != level && self.lists(named)).then_some(named)
    }
}

impl Model {
    /// The level that is sent if `requested` is asked for: that one, else the next lower one that the model offers,
    /// else the lowest. A model that cannot think has only `off`.
    pub fn thinking_level(&self, requested: ThinkingLevel) -> ThinkingLevel {
        let offered = self.offered_thinking_levels();
        let alias =
            self.thinking_levels.alias_of(requested).filter(|level| offered.contains(level));
        alias
            .or_else(|| offered.iter().rfind(|level| **level <= requested).copied())
            .or_else(|| offered.first().copied())
            .unwrap_or(ThinkingLevel::Off)
    }

    /// The offered levels, from the least to the most: those that are listed for the model and that a request can
    /// distinguish. A model that cannot think has only `off`; a model whose thinking cannot be controlled has only
    /// `high`.
    pub fn offered_thinking_levels(&self) -> Vec<ThinkingLevel> {
        if !self.reasoning {
            return vec![ThinkingLevel::Off];
        }
        let levels = &self.thinking_levels;
        let control = ThinkingControl::of(self);
        let least = match control {
            ThinkingControl::Levels { least, .. } => least,
            ThinkingControl::Switch => ThinkingLevel::Minimal,
            ThinkingControl::Nothing => return vec![ThinkingLevel::High],
        };
        let can_be_off = match control {
            ThinkingControl::Levels { off: Off::ByOwnWord, .. } => {
                self.thinking_word(ThinkingLevel::Off) != ThinkingLevel::Off.as_str()
            }
            ThinkingControl::Levels { off: Off::Never, .. } => false,
            _ => true,
        };
        let is_offered = |level: &ThinkingLevel| match level {
            ThinkingLevel::Off => can_be_off && levels.lists(*level),
            level => *level >= least && levels.lists(*level) && levels.alias_of(*level).is_none(),
        };
        let mut offered: Vec<_> = ThinkingLevel::ALL.into_iter().filter(is_offered).collect();
        if control == ThinkingControl::Switch {
            let most = offered.iter().rfind(|level| **level <= ThinkingLevel::High).copied();
            offered.retain(|level| *level == ThinkingLevel::Off || Some(*level) == most);
        }
        offered
    }

    /// The provider's word for `level`.
    pub fn thinking_word(&self, level: ThinkingLevel) -> &str {
        let word = self.thinking_levels.0.iter().find(|(offered, _)| *offered == level);
        word.and_then(|(_, word)| word.as_deref()).unwrap_or(level.as_str())
    }
}

#[cfg(test)]
mod tests;
