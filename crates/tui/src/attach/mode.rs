//! The permission mode of the session at the gateway.

use myclaw_engine::Mode;
use myclaw_gateway_client::GatewayLink;
use serde_json::{Value, json};

use super::text;
use super::view::View;
use crate::display::Display;
use myclaw_front::mode::list_modes;
use myclaw_front::terminal::Style;

impl View {
    /// Takes in the mode that the gateway names, and shows one that is not the usual one.
    pub(super) fn learn_mode(&mut self, state: &Value, display: &Display) {
        self.mode = text(state, "mode").parse().unwrap_or_default();
        if self.mode != Mode::default() {
            display.say(Style::Warning, &said(self.mode));
        }
    }

    /// The mode was changed.
    pub(super) fn mode_changed(&mut self, event: &Value, display: &Display) {
        if let Ok(mode) = text(event, "to").parse() {
            self.mode = mode;
            display.say(Style::Warning, &said(mode));
        }
    }

    /// Obeys `/mode`; the answer of the gateway comes as an event.
    pub(super) fn obey_mode(&self, name: Option<&str>, link: &GatewayLink) -> Option<String> {
        match name.map(str::parse::<Mode>) {
            None => Some(list_modes(self.mode)),
            Some(Ok(mode)) => {
                self.ask_for(mode, link);
                None
            }
            Some(Err(error)) => Some(error.to_string()),
        }
    }

    /// Asks for the next mode.
    pub(super) fn next_mode(&mut self, link: &GatewayLink) {
        self.mode = self.mode.next();
        self.ask_for(self.mode, link);
    }

    fn ask_for(&self, mode: Mode, link: &GatewayLink) {
        link.ask("mode", json!({"session": self.key(), "mode": mode}));
    }
}

fn said(mode: Mode) -> String {
    format!("mode {mode}: {}", mode.meaning())
}
