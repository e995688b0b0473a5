//! When something is due: once, at an interval, or by a cron expression in a time zone.
//!
//! Pure functions of a schedule and a time; nothing here waits or reads a clock. Times are milliseconds since the Unix
//! epoch. The next due time comes from the previous one, so a late run moves no later one.
#![forbid(unsafe_code)]

mod cron;
mod duration;
mod error;
mod hours;
mod schedule;
mod words;
mod zone;

pub use cron::Cron;
pub use duration::{parse_duration, write_duration};
pub use error::ScheduleError;
pub use hours::ActiveHours;
pub use jiff::tz::TimeZone;
pub use schedule::Schedule;
pub use words::parse_when;
pub use zone::{local_zone, parse_time, zone_named};
