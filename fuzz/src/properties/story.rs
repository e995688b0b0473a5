//! The events of an answer, followed as a program that shows them would.

use myclaw_llm::{AssistantMessage, ContentBlock, StreamEvent, ToolCall};

/// What the events said.
#[derive(Debug, Default)]
pub(super) struct Story {
    blocks: Vec<Block>,
    has_begun: bool,
    pub(super) is_done: bool,
    message: Option<AssistantMessage>,
}

/// One block as it was told.
#[derive(Debug)]
struct Block {
    told: Told,
    ended: bool,
}

#[derive(Debug)]
enum Told {
    Text(String),
    Thinking(String),
    Call { id: String, name: String, arguments: String, whole: Option<Box<ToolCall>> },
}

impl Story {
    /// Follows the events.
    ///
    /// # Panics
    /// When they make no sense: something before the start or after the end, a block out of order, a delta of no open
    /// block or an empty one, or a call without an id or a name.
    pub(super) fn of(events: &[StreamEvent]) -> Self {
        let mut story = Self::default();
        for event in events {
            assert!(!story.is_done, "{event:?} comes after the end");
            story.follow(event);
        }
        story
    }

    /// How many blocks began.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    fn follow(&mut self, event: &StreamEvent) {
        assert_eq!(self.has_begun, *event != StreamEvent::Start, "{event:?}");
        self.has_begun = true;
        match event {
            StreamEvent::Start => {}
            StreamEvent::OptionLeftOut { .. } => panic!("a decoder refuses no option: {event:?}"),
            StreamEvent::TextStart { index } => self.begin(*index, Told::Text(String::new())),
            StreamEvent::ThinkingStart { index } => {
                self.begin(*index, Told::Thinking(String::new()));
            }
            StreamEvent::ToolCallStart { index, id, name } => {
                assert!(!id.is_empty() && !name.is_empty(), "{event:?}");
                let (id, name) = (id.clone(), name.clone());
                self.begin(*index, Told::Call { id, name, arguments: String::new(), whole: None });
            }
            StreamEvent::TextDelta { index, delta }
            | StreamEvent::ThinkingDelta { index, delta }
            | StreamEvent::ToolCallDelta { index, delta, .. } => {
                assert!(!delta.is_empty(), "{event:?}");
                match (event, self.open(*index)) {
                    (StreamEvent::TextDelta { .. }, Told::Text(text))
                    | (StreamEvent::ThinkingDelta { .. }, Told::Thinking(text))
                    | (StreamEvent::ToolCallDelta { .. }, Told::Call { arguments: text, .. }) => {
                        text.push_str(delta)
                    }
                    (_, told) => panic!("{event:?} for {told:?}"),
                }
            }
            StreamEvent::ToolCallEnd { index, tool_call } => {
                let Told::Call { id, name, whole, .. } = self.open(*index) else {
                    panic!("{event:?}");
                };
                assert_eq!((&*id, &*name), (&tool_call.id, &tool_call.name));
                *whole = Some(Box::new(tool_call.clone()));
                self.blocks[*index].ended = true;
            }
            StreamEvent::TextEnd { index } => {
                assert!(matches!(self.open(*index), Told::Text(_)), "{event:?}");
                self.blocks[*index].ended = true;
            }
            StreamEvent::ThinkingEnd { index } => {
                assert!(matches!(self.open(*index), Told::Thinking(_)), "{event:?}");
                self.blocks[*index].ended = true;
            }
            StreamEvent::Done { reason, message } => {
                assert_eq!(*reason, message.stop_reason);
                self.is_done = true;
                self.message = Some((**message).clone());
            }
            StreamEvent::Error { .. } => panic!("{event:?}: decoders give errors, not events"),
        }
    }

    fn begin(&mut self, index: usize, told: Told) {
        assert_eq!(index, self.blocks.len());
        self.blocks.push(Block { told, ended: false });
    }

    fn open(&mut self, index: usize) -> &mut Told {
        let block = &mut self.blocks[index];
        assert!(!block.ended, "block {index} has ended");
        &mut block.told
    }

    /// Checks that `message` is what was told, and whole.
    pub(super) fn assert_tells(&self, message: &AssistantMessage) {
        assert_eq!(self.message.as_ref(), Some(message));
        assert!(self.blocks.iter().all(|block| block.ended), "{self:?}");
        assert_eq!(self.blocks.len(), message.content.len());
        for (block, content) in self.blocks.iter().zip(&message.content) {
            match (&block.told, content) {
                (Told::Text(told), ContentBlock::Text(text)) => {
                    assert_eq!(*told, text.text);
                    assert!(!told.is_empty() || text.text_signature.is_some());
                }
                (Told::Thinking(told), ContentBlock::Thinking(thinking)) => {
                    assert_eq!(*told, thinking.thinking);
                    assert!(!told.is_empty() || thinking.thinking_signature.is_some());
                }
                (Told::Call { arguments, whole, .. }, ContentBlock::ToolCall(call)) => {
                    assert_eq!(whole.as_deref(), Some(call));
                    if let Some(invalid) = &call.invalid_arguments {
                        assert_eq!(arguments, invalid);
                        assert!(call.arguments.is_empty());
                    }
                }
                (told, content) => panic!("{told:?} became {content:?}"),
            }
        }
        let mut ids: Vec<&str> = message.tool_calls().map(|call| call.id.as_str()).collect();
        ids.push("call_1");
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "two calls have one id");
    }
}
