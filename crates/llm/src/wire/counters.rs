//! Token counters of the formats whose input count includes cached tokens.

use crate::Usage;

/// Counters of one call as such a server sends them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct InclusiveCounters {
    /// Input, with what was read from and written to the cache.
    pub(crate) input: u64,
    /// Output, at most servers with the reasoning.
    pub(crate) output: u64,
    /// Both, if the server reports it.
    pub(crate) total: Option<u64>,
    /// Part of the input that came from the cache.
    pub(crate) cache_read: u64,
    /// Part of the input that went to the cache.
    pub(crate) cache_write: u64,
    /// Reasoning.
    pub(crate) reasoning: u64,
}

impl InclusiveCounters {
    /// Writes them to `usage`, unless nothing was counted.
    pub(crate) fn store(self, usage: &mut Usage) {
        let Self { input, output, total, .. } = self;
        if input == 0 && output == 0 {
            return;
        }
        let cache_read = self.cache_read.min(input);
        let cache_write = self.cache_write.min(input - cache_read);
        // Some hosts count reasoning in addition to the output, not in it; the total shows which.
        let counted = input.saturating_add(output);
        let counts_apart =
            self.reasoning > 0 && total == Some(counted.saturating_add(self.reasoning));
        usage.input = input - cache_read - cache_write;
        usage.output = if counts_apart { output.saturating_add(self.reasoning) } else { output };
        usage.cache_read = cache_read;
        usage.cache_write = cache_write;
        usage.reasoning = self.reasoning;
    }
}
