//! What people of a chat read about a failure.

/// Message to the people of a chat. Whether a model, the config or this machine is at fault is for the owner, who
/// finds it in the log.
pub fn for_people<'m>(class: &str, message: &'m str) -> &'m str {
    match class {
        "timeout" | "network" | "server_error" => {
            "The model does not answer at the moment. What you wrote is kept; ask again in a while."
        }
        "rate_limit" => {
            "The model has too much to do at the moment. What you wrote is kept; ask again in some minutes."
        }
        "all_models_failed" => {
            "None of the models answers at the moment. What you wrote is kept; ask again in a while."
        }
        "quota" | "billing" => {
            "I cannot answer: the account for the model is used up. Tell the owner of this agent."
        }
        "auth" => "I cannot answer: the model does not let me in. Tell the owner of this agent.",
        "context_overflow" => {
            "This conversation has become too long for the model. Write /new, or !new, to begin a new one."
        }
        "empty_reply" => "The model ended without an answer. Ask again, or in other words.",
        "refusal" => {
            "The model refused to answer, or a filter of its provider stopped it. Ask in other words."
        }
        "max_iterations" | "run_seconds" | "run_tokens" | "run_cost" => {
            "I stopped without an answer, because I reached the limit for one message. Write another message, and I continue."
        }
        "repeated_calls" => {
            "I stopped without an answer, because I tried the same thing again and again. Write another message, and I continue."
        }
        "day_tokens" | "day_cost" => {
            "I cannot answer, because the limit of this day is reached. Write again tomorrow."
        }
        "hook" => "A rule of the owner of this agent does not let this message through.",
        "queue_full" => {
            "Your message was dropped, because too many waited. Send it again if it still matters."
        }
        // What the sender can mend, and what somebody asked for.
        "usage" | "aborted" => message,
        _ => {
            "I cannot answer, because something does not work here. The owner of this agent finds the reason in the log."
        }
    }
}
