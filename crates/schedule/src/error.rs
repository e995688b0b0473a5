//! What is wrong with a schedule.

/// Why a schedule cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// A cron expression with the wrong number of fields.
    #[error(
        "a cron expression has 5 fields (minute, hour, day of month, month, day of week), or 6 with seconds before \
         them, and `{expression}` has {fields}; write it like `0 9 * * 1-5`"
    )]
    Fields {
        /// The expression.
        expression: String,
        /// How many it has.
        fields: usize,
    },
    /// One field is wrong.
    #[error("the {field} `{text}` of the cron expression is wrong: {problem}")]
    Field {
        /// Its name.
        field: &'static str,
        /// As it was written.
        text: String,
        /// What to write instead.
        problem: String,
    },
    /// No date ever matches.
    #[error(
        "the cron expression `{0}` never matches: there is no such date; change the day or the month"
    )]
    Never(String),
    /// There is no such zone.
    #[error("there is no time zone `{0}`; write one like `Europe/Berlin` or `UTC`")]
    Zone(String),
    /// A time cannot be read.
    #[error(
        "`{0}` is not a time; write one like `2026-12-24T18:00`, `2026-12-24T18:00:00+01:00`, `tomorrow 9:00`, or `20m` \
         for a time from now"
    )]
    Time(String),
    /// A sentence cannot be understood.
    #[error(
        "`{0}` is no time that is understood; say one like `tomorrow at 9`, `in 20 minutes`, `every weekday at 8` or `on the \
         first Monday of the month at 10`"
    )]
    When(String),
    /// A duration cannot be read.
    #[error(
        "`{0}` is not a duration; write whole numbers with units (s, m, h, d, w), such as `30m` or `1h30m`"
    )]
    Duration(String),
    /// An interval outside the limits.
    #[error("an interval is from 1 second to 10 years, and this one is {0}; give another one")]
    Interval(String),
    /// A time of day cannot be read.
    #[error("`{0}` is not a time of day; write one from `00:00` to `24:00`")]
    TimeOfDay(String),
    /// Active hours without any time in them.
    #[error(
        "the active hours begin and end at {0}, so they are empty; leave them out, or give another end"
    )]
    EmptyHours(String),
}
