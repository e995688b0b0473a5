//! Arguments of a command that are described only once the command is asked for.

use std::ops::{Deref, DerefMut};

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Id};

/// The arguments `T`. The grammar of all commands together takes half a megabyte, and a program that runs one of them needs
/// one: `Command::build` or parsing the command's name adds the rest.
#[derive(Debug)]
pub(crate) struct Later<T>(pub(crate) T);

impl<T: Args> Args for Later<T> {
    fn group_id() -> Option<Id> {
        T::group_id()
    }

    fn augment_args(command: Command) -> Command {
        command.defer(described::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(described::<T>)
    }
}

/// Adds the arguments, and keeps what the command says about itself, which those of `T` would replace.
fn described<T: Args>(command: Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    let command = T::augment_args(command);
    with_negative_values(command)
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

/// The same, where a number below zero behind an option is its value, which the option can refuse, and no option of its own.
fn with_negative_values(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    });
    command.mut_subcommands(with_negative_values)
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Later<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
