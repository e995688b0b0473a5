//! What the implementations of [`Channel`](crate::Channel) have in common: methods that pass on what they get to functions of
//! the vendor.

/// The methods of `impl Channel` for a type with a field `account`: each names the async function of the type that does the
/// work. Those that a channel does not name, it writes itself or leaves to the trait.
macro_rules! channel_shell {
    ($($method:ident: $work:tt),+ $(,)?) => {
        fn account(&self) -> &$crate::Account {
            &self.account
        }

        $($crate::shell::channel_method! { $method: $work })+
    };
}

macro_rules! channel_method {
    (run: $receive:ident) => {
        fn run(
            self: std::sync::Arc<Self>,
            intake: std::sync::Arc<dyn $crate::Intake>,
        ) -> $crate::BoxFuture<'static, ()> {
            Box::pin(async move { self.$receive(&*intake).await })
        }
    };
    (send: $send:ident) => {
        fn send<'a>(
            &'a self,
            part: &'a $crate::Part,
        ) -> $crate::BoxFuture<'a, Result<String, $crate::SendFailure>> {
            Box::pin(self.$send(part))
        }
    };
    (find: $find:ident) => {
        fn find<'a>(
            &'a self,
            part: &'a $crate::Part,
        ) -> $crate::BoxFuture<'a, Result<Option<String>, $crate::SendFailure>> {
            Box::pin(self.$find(part))
        }
    };
    (change: [$react:ident, $edit:ident, $unsend:ident]) => {
        fn change<'a>(
            &'a self,
            change: $crate::Change,
            part: &'a $crate::Part,
            message: &'a str,
        ) -> $crate::BoxFuture<'a, Result<(), $crate::SendFailure>> {
            Box::pin(async move {
                match change {
                    $crate::Change::React => self.$react(part, message).await,
                    $crate::Change::Edit => self.$edit(part, message).await,
                    $crate::Change::Unsend => self.$unsend(part, message).await,
                }
            })
        }
    };
    (poll: $ask:ident) => {
        fn poll<'a>(
            &'a self,
            part: &'a $crate::Part,
            poll: &'a $crate::Poll,
        ) -> $crate::BoxFuture<'a, Result<String, $crate::SendFailure>> {
            Box::pin(self.$ask(part, poll))
        }
    };
    (hook: [$admit:ident, $receive:ident]) => {
        fn admit(&self, head: &$crate::HookRequest) -> Result<(), $crate::HookAnswer> {
            self.$admit(head)
        }

        fn receive<'a>(
            &'a self,
            request: $crate::HookRequest,
            intake: &'a dyn $crate::Intake,
        ) -> $crate::BoxFuture<'a, $crate::HookAnswer> {
            Box::pin(self.$receive(request, intake))
        }
    };
    (live: here) => {
        fn live(&self) -> Option<&dyn $crate::Live> {
            Some(self)
        }
    };
}

pub(crate) use {channel_method, channel_shell};
