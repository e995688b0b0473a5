//! What a person reads when the config file is wrong.

use myclaw_config::{ConfigError, Location, RenderStyle};

use crate::support::Home;

/// The message for a file with this text, without the path of the file.
fn message(text: &str) -> String {
    Home::with_config(text).error().replace("~/.myclaw/myclaw.json:", "")
}

#[test]
fn a_mistake_in_a_search_or_an_identity_link_is_one_line_too() {
    for (text, expected) in [
        (
            "{ agents: { defaults: { memorySearch: { maxResults: 51 } } } }",
            "1:53: agents.defaults.memorySearch.maxResults: expected an integer from 1 to 50, found 51",
        ),
        (
            "{ agents: { list: [{ id: 'a', memorySearch: { minScore: 1.5 } }] } }",
            "1:57: agents.list[0].memorySearch.minScore: expected a number from 0 to 1, found 1.5",
        ),
        (
            "{ channels: { identityLinks: { ann: ['telegram:1', 'email:a@h'], bob: ['email:A@H'] } } }",
            "1:72: channels.identityLinks.bob[0]: this id belongs to another person already; an id stands in one link, and once; remove it from one of them",
        ),
        (
            "{ channels: { identityLinks: { ann: ['telegram:1', 'telegram: 1'] } } }",
            "1:52: channels.identityLinks.ann[1]: this id belongs to this person already; an id stands in one link, and once; remove it from one of them",
        ),
        (
            "{ channels: { identityLinks: { ann: ['telegramm:1'] } } }",
            "1:38: channels.identityLinks.ann[0]: there is no channel of this name; did you mean `telegram`?",
        ),
        (
            "{ channels: { identityLinks: { ann: ['42'] } } }",
            "1:38: channels.identityLinks.ann[0]: expected a person as `channel:id`; such as \"telegram:42\"; `myclaw pairing list` shows the ids of people who wrote",
        ),
        (
            "{ channels: { identityLinks: { 'Ann B': [] } } }",
            "1:32: channels.identityLinks[\"Ann B\"]: this name cannot be part of a session key; use lower-case letters, digits, `_` and `-`, at most 64",
        ),
        (
            "{ channels: { dmScope: 'main', identityLinks: { ann: [] } } }",
            "1:32: channels.identityLinks: with `dmScope` \"main\" everybody shares one session, so links have no effect; remove the links, or set `channels.dmScope` to \"per-account-peer\" or \"per-peer\"",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn a_mistake_in_a_channel_or_a_rule_is_one_line_too() {
    for (text, expected) in [
        (
            "{ tools: { byChannel: { telegrm: { deny: ['bash'] } } } }",
            "1:25: tools.byChannel.telegrm: there is no channel of this name; did you mean `telegram`?",
        ),
        (
            "{ tools: { exec: { allowlist: ['ls', 'git *'] } } }",
            "1:38: tools.exec.allowlist[1]: expected a program, found a program with arguments; write the arguments as `{ program: \"git\", args: [\"log\", \"...\"] }`; a program alone may have any",
        ),
        (
            "{ tools: { exec: { allowlist: [{ program: 'git status' }] } } }",
            "1:43: tools.exec.allowlist[0].program: expected a program, found a program with arguments; write the arguments as `{ program: \"git\", args: [\"log\", \"...\"] }`; a program alone may have any",
        ),
        (
            "{ channels: { telegram: { botToken: '1:a', allowFrom: ['tg:42'] } } }",
            "1:56: channels.telegram.allowFrom[0]: nobody has such an id in this channel; write 42",
        ),
        (
            "{ channels: { telegram: { botToken: '1:a', allowFrom: [7, '*'] } } }",
            "1:59: channels.telegram.allowFrom[1]: `*` names nobody here; to answer everybody, set `channels.telegram.dmPolicy` to \"open\"",
        ),
        (
            "{ channels: { slack: { appToken: 'xapp-1', botToken: 'xoxb-1', groups: { C1: { allowFrom: ['*'] } } } } }",
            "1:92: channels.slack.groups.C1.allowFrom[0]: `*` names nobody here; to answer everybody in this group, leave `allowFrom` out",
        ),
        (
            "{ channels: { telegram: { botToken: '1:a', allowFrom: [7, '@ann', 'ann'] } } }",
            "1:67: channels.telegram.allowFrom[2]: nobody has such an id in this channel; write the number that `myclaw pairing list` shows, or `@name`",
        ),
        (
            "{ channels: { slack: { token: 'x', botToken: 'xoxb-1', appToken: 'xapp-1' } } }",
            "1:24: channels.slack.token: unknown key; did you mean `appToken` or `botToken`?",
        ),
        (
            "{ channels: { telegram: { botToken: '1:a', enabled: true } } }",
            "1:44: channels.telegram.enabled: unknown key; a channel runs if it is in the file; take it out to stop it",
        ),
        (
            "{ gateway: { auth: { token: 'x' } } }",
            "1:14: gateway.auth: unknown key; did you mean `token`?",
        ),
        (
            "{ hooks: { tool_call: [{ command: ['true'], tools: ['bash'] }] } }",
            "1:45: hooks.tool_call[0].tools: unknown key; did you mean `match`?",
        ),
        (
            "{ channels: { telegram: { botToken: 't', allowedChatIds: [1, true] } } }",
            "1:62: channels.telegram.allowedChatIds[1]: expected an integer or a string that is not empty, found true",
        ),
        (
            "{ channels: { signal: { account: '0151' } } }",
            "1:34: channels.signal.account: expected the phone number of the account, or its id; write the number with its country, such as \"+4915112345678\"",
        ),
        (
            "{ channels: { whatsapp: { phoneNumberId: '1', accessToken: 't', appSecret: 's', verifyToken: 'v', apiVersion: '26' } } }",
            "1:111: channels.whatsapp.apiVersion: expected a version of the Graph API; such as \"v26.0\"",
        ),
        (
            "{ channels: { whatsapp: { phoneNumberId: '1', accessToken: 't', appSecret: 's', verifyToken: 'v', allowFrom: ['+1 650'] } } }",
            "1:111: channels.whatsapp.allowFrom[0]: nobody has such an id in this channel; write the number with its country, without `+` and spaces, such as \"1650\"",
        ),
        (
            "{ channels: { slack: { appToken: 'xapp-1', botToken: 'xoxb-1', mediaMaxMb: 101 } } }",
            "1:76: channels.slack.mediaMaxMb: expected an integer from 1 to 100, found 101",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    // As other programs want it.
    Home::with_config(
        "{ channels: { telegram: { botToken: '1:a', dmPolicy: 'open', allowFrom: ['*'] } } }",
    )
    .load()
    .unwrap();
}

#[test]
fn one_mistake_is_one_line_with_place_path_and_help() {
    for (text, expected) in [
        (
            "{\n  provider: { name: 'a', model: 'm', authProfile: [] },\n}",
            "2:38: provider.authProfile: unknown key; did you mean `authProfiles`?",
        ),
        (
            "{\n  provider: { name: 'a', model: 'm' },\n}",
            "2:3: provider.authProfiles: this key is missing; add it, with a list",
        ),
        ("{ maxRetries: 4 }", "1:3: maxRetries: unknown key; did you mean `agent.maxRetries`?"),
        (
            "{ agent: {}, agents: {}, agnet: {} }",
            "1:26: agnet: unknown key; like `agent`, which is here already",
        ),
        ("{ tools: { shell: {} } }", "1:12: tools.shell: unknown key; did you mean `bash`?"),
        (
            "{ tools: { zebra: {} } }",
            "1:12: tools.zebra: unknown key; known here: `profile`, `allow`, `deny`, `ask`, `exec`, `byProvider`, `byChannel`, `bySender`, `approvals`, `fs`, `bash`, `web`, `diagnostics`, `browser`, `sessions`, `message`",
        ),
        (
            "{ agent: { maxRetries: -1 } }",
            "1:24: agent.maxRetries: expected 0 or a positive integer, found -1",
        ),
        (
            "{ agent: { maxRetries: 1.5 } }",
            "1:24: agent.maxRetries: expected 0 or a positive integer, found 1.5",
        ),
        (
            "{ agent: { maxIterations: 'many' } }",
            "1:27: agent.maxIterations: expected 0 or a positive integer or \"unlimited\", found another string",
        ),
        (
            "{ agent: { maxToolResultChars: '5' } }",
            "1:32: agent.maxToolResultChars: expected a positive integer, found a string; write it without quotes; a \
             `${VAR}` reference always gives a string",
        ),
        (
            "{ agent: { workspaceDir: '' } }",
            "1:26: agent.workspaceDir: expected a string that is not empty, found an empty one",
        ),
        (
            "{ agent: null }",
            "1:10: agent: expected an object, found null; leave the key out instead",
        ),
        ("{ agent: [25] }", "1:3: agent: expected an object, found a list"),
        ("[]", "1:1: expected an object, found a list"),
        ("5", "1:1: expected an object, found 5"),
        (
            "{ gateway: { port: 70000 } }",
            "1:20: gateway.port: expected an integer from 1 to 65535, found 70000",
        ),
        (
            "{ gateway: { port: 0 } }",
            "1:20: gateway.port: expected an integer from 1 to 65535, found 0",
        ),
        (
            "{ tools: { bash: { timeoutSeconds: 86401 } } }",
            "1:36: tools.bash.timeoutSeconds: expected an integer from 1 to 86400, found 86401",
        ),
        (
            "{ logging: { level: 'inf' } }",
            "1:21: logging.level: expected \"debug\", \"info\", \"warn\" or \"error\", found another string; did you mean \
             `info`?",
        ),
        (
            "{ models: { providers: { 'my.host': { baseUrl: 'localhost:8080' } } } }",
            "1:48: models.providers[\"my.host\"].baseUrl: expected an http:// or https:// URL without a fragment (#), found another string; write `http://localhost:8080`",
        ),
        (
            "{ models: { providers: { a: { baseUrl: 'http://h', api: 'openai' } } } }",
            "1:57: models.providers.a.api: expected \"anthropic-messages\", \"openai-completions\", \
             \"openai-responses\", \"google-generative-ai\" or \"bedrock-converse\", found another string",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn an_account_of_email_is_neither_read_on_the_way_nor_open_to_forged_senders() {
    let message_of = |rest: &str| {
        message(&format!(
            "{{ channels: {{ email: {{ address: 'a@b.c', imap: {{ host: 'h' }}, smtp: {{ host: 'h' }}, {rest} }} }} }}"
        ))
    };
    for (rest, words) in [
        ("authservId: 'h'", "channels.email: there is neither `password` nor `accessToken`"),
        (
            "authservId: 'h', password: 'p', accessToken: 't'",
            "there is a `password` as well; keep one of both",
        ),
        (
            "password: 'p'",
            "channels.email: `authservId` is missing, so nobody can tell forged senders; open a mail",
        ),
        (
            "password: 'p', senderCheck: 'no'",
            "channels.email.senderCheck: expected \"required\" or \"none\"",
        ),
        (
            "password: 'p', authservId: 'h', mailbox: 'Entwürfe'",
            "channels.email.mailbox: only names in ASCII",
        ),
        (
            "password: 'p', authservId: 'h', mediaMaxMb: 51",
            "expected an integer from 1 to 50, found 51",
        ),
    ] {
        let found = message_of(rest);
        assert!(found.contains(words), "{rest}: {found}");
    }
    let server = |server: &str| {
        message(&format!(
            "{{ channels: {{ email: {{ address: 'a@b.c', imap: {server}, smtp: {{ host: 'h' }}, password: 'p', \
             senderCheck: 'none' }} }} }}"
        ))
    };
    for (text, words) in [
        (
            "{ host: 'h', security: 'none' }",
            "imap.security: the password and all messages could be read on the way",
        ),
        ("{ host: 'imaps://h' }", "imap.host: expected the name of a server, not a URL"),
        (
            "{ host: 'h', port: 65536 }",
            "imap.port: expected an integer from 1 to 65535, found 65536",
        ),
    ] {
        let found = server(text);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn an_account_of_irc_has_names_that_the_protocol_allows() {
    for (rest, words) in [
        ("nick: '1claw'", "channels.irc.nick: this cannot be a nickname"),
        (
            "nick: 'claw', tls: false",
            "channels.irc.tls: the password and all messages could be read on the way",
        ),
        (
            "nick: 'claw', groups: { Team: {} }",
            "channels.irc.groups.Team: expected the name of a channel in lower case",
        ),
        ("nick: 'claw', groups: { '#a b': {} }", "expected the name of a channel in lower case"),
        ("nick: 'claw', sasl: { user: 'u' }", "channels.irc.sasl.password: this key is missing"),
    ] {
        let found = message(&format!("{{ channels: {{ irc: {{ host: 'h', {rest} }} }} }}"));
        assert!(found.contains(words), "{rest}: {found}");
    }
}

#[test]
fn an_account_of_xmpp_has_an_address_and_encryption() {
    for (rest, words) in [
        ("address: 'claw'", "channels.xmpp.address: expected an address without a resource"),
        ("address: 'claw@h/x'", "channels.xmpp.address: expected an address without a resource"),
        (
            "address: 'claw@h', security: 'none'",
            "channels.xmpp.security: the password and all messages could be read on the way",
        ),
        (
            "address: 'claw@h', host: 'https://h'",
            "channels.xmpp.host: expected the name of a server",
        ),
        (
            "address: 'claw@h', groups: { Team: {} }",
            "channels.xmpp.groups.Team: expected the address of a room in lower case",
        ),
    ] {
        let found = message(&format!("{{ channels: {{ xmpp: {{ password: 'p', {rest} }} }} }}"));
        assert!(found.contains(words), "{rest}: {found}");
    }
}

#[test]
fn the_gateway_is_not_exposed_by_mistake() {
    for (text, expected) in [
        (
            "{ gateway: { bind: 'tailnet' } }",
            "1:20: gateway.bind: expected `loopback`, `lan`, `all` or an address of this machine such as 192.168.1.5; other \
             values have no meaning here; the port is gateway.port",
        ),
        (
            "{ gateway: { bind: 'lan' } }",
            "1:20: gateway.bind: the gateway would speak plain HTTP beyond this machine, so anybody in between could read \
             the token; set gateway.tls, leave gateway.bind out, or, if a VPN or a proxy encrypts the whole way, set \
             gateway.protectedLink to true",
        ),
        (
            "{ gateway: { trustedProxies: ['127.0.0.1', 'proxy'] } }",
            "1:44: gateway.trustedProxies[1]: expected an address such as 127.0.0.1, or a network such as 10.0.0.0/8; \
             correct it, or remove it",
        ),
        (
            "{ gateway: { telemetry: { endpoint: 'collector:4318' } } }",
            "1:37: gateway.telemetry.endpoint: expected an http:// or https:// URL without a fragment (#), found another \
             string; write `http://collector:4318`",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn levels_of_thinking_are_words() {
    for (text, expected) in [
        (
            "{ agents: { defaults: { thinkingDefault: 'hihg' } } }",
            "1:42: agents.defaults.thinkingDefault: expected \"off\", \"minimal\", \"low\", \"medium\", \"high\" or \
             \"xhigh\", found another string; did you mean `high`?",
        ),
        (
            "{ models: { providers: { a: { models: [{ id: 'm', thinkingLevels: { max: 'x' } }] } } } }",
            "1:69: models.providers.a.models[0].thinkingLevels.max: unknown key; known here: `off`, `minimal`, `low`, \
             `medium`, `high`, `xhigh`",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn contradictions_are_found_too() {
    for (text, expected) in [
        (
            "{ hooks: { tool_call: [{ command: 'true' }, { command: [' ', 'x'] }] } }",
            "1:57: hooks.tool_call[1].command[0]: expected the name or path of a program; a list begins with the \
             program; its arguments follow",
        ),
        (
            "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: '1' }, { id: 'x', apiKey: '2' }] } }",
            "1:85: provider.authProfiles[1].id: the same id as `provider.authProfiles[0].id`; give each its own id",
        ),
        (
            "{ agents: { list: [{ id: 'My Agent' }, { id: 'my-agent' }] } }",
            "1:46: agents.list[1].id: the same id as `agents.list[0].id`; give each its own id",
        ),
        (
            "{ agents: { list: [{ id: '???' }] } }",
            "1:26: agents.list[0].id: expected an id with a letter or digit in it; use letters a to z, digits, `_` and \
             `-`",
        ),
        (
            "{ agents: { defaults: { model: 'opus' } } }",
            "1:32: agents.defaults.model: expected a model as \"provider/model\"; such as \
             \"anthropic/claude-sonnet-4-6\"",
        ),
        (
            "{ agents: { list: [{ id: 'a', model: { primary: '/m' } }] } }",
            "1:49: agents.list[0].model.primary: expected a model as \"provider/model\"; such as \
             \"anthropic/claude-sonnet-4-6\"",
        ),
        (
            "{ agents: { defaults: { model: { primary: 'a/b', fallbacks: ['gpt'] } } } }",
            "1:62: agents.defaults.model.fallbacks[0]: expected a model as \"provider/model\"; such as \
             \"anthropic/claude-sonnet-4-6\"",
        ),
        (
            "{ agents: { defaults: { models: ['anthropic'] } } }",
            "1:34: agents.defaults.models[0]: expected a model as \"provider/model\", or \"provider/*\"; such as \
             \"anthropic/*\"",
        ),
        (
            "{ models: { providers: { a: { headers: { 'x y': 'secret' } } } } }",
            "1:42: models.providers.a.headers[\"x y\"]: this cannot be the name of a header; use letters, digits and `-`",
        ),
        (
            "{ provider: { name: 'a/b', model: 'm', authProfiles: [{ id: 'x', apiKey: '1' }] } }",
            "1:21: provider.name: a provider's name may not hold `/`; the model's id belongs into `provider.model`",
        ),
        (
            "{ models: { providers: { 'a/b': { baseUrl: 'http://h' } } } }",
            "1:26: models.providers[\"a/b\"]: a provider's name may not be empty or hold `/`; choose another name",
        ),
        (
            "{ tools: { fs: { stateDirectories: ['~/.myclaw'] } } }",
            "1:37: tools.fs.stateDirectories[0]: expected the name of a directory below the state directory; write for \
             example \"skills\"; all of the state directory cannot be opened, because its keys are in it",
        ),
        (
            "{ tools: { fs: { stateDirectories: ['.', 'skills/../..', '/root/.myclaw', '~'] } } }",
            "1:37: tools.fs.stateDirectories[0]: expected the name of a directory below the state directory; write for \
             example \"skills\"; all of the state directory cannot be opened, because its keys are in it\n\
             1:42: tools.fs.stateDirectories[1]: expected the name of a directory below the state directory; write for \
             example \"skills\"; all of the state directory cannot be opened, because its keys are in it\n\
             1:58: tools.fs.stateDirectories[2]: expected the name of a directory below the state directory; write for \
             example \"skills\"; all of the state directory cannot be opened, because its keys are in it\n\
             1:75: tools.fs.stateDirectories[3]: expected the name of a directory below the state directory; write for \
             example \"skills\"; all of the state directory cannot be opened, because its keys are in it",
        ),
        (
            "{ models: { providers: { a: { baseUrl: 'http://h', models: [{ id: 'm' }, { id: 'm' }] } } } }",
            "1:80: models.providers.a.models[1].id: the same id as `models.providers.a.models[0].id`; give each its own \
             id",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn people_and_chats_that_cannot_answer_questions_are_refused() {
    let said = |approvals: &str| message(&format!("{{ tools: {{ approvals: {approvals} }} }}"));
    for (owner, words) in [
        ("42", "1:34: tools.approvals.owners[0]: expected a person as `channel:id`"),
        ("telegram:", "expected a person as `channel:id`"),
        ("telegram: ", "expected a person as `channel:id`"),
        (":42", "expected a person as `channel:id`"),
        ("Telegram:42", "expected a person as `channel:id`"),
        ("email:me@example.org", "channels with chats are telegram, matrix,"),
        ("webhook:ci", "channels with chats are telegram, matrix,"),
        ("socket:me", "channels with chats are telegram, matrix,"),
        ("telegram:@ann", "this does not prove who writes; write the number of your account"),
        ("telegram:Ann", "this does not prove who writes"),
        ("telegram:-1005", "this does not prove who writes"),
        ("telegram:*", "this does not prove who writes"),
        ("discord:ann#1234", "this does not prove who writes"),
        ("irc:ann!a@host", "this does not prove who writes; write the name of your account"),
        ("irc:@ann", "this does not prove who writes"),
    ] {
        let said = said(&format!("{{ owners: ['{owner}'] }}"));
        assert!(said.contains(words), "{owner}: {said}");
    }
    // The one that is wrong is named.
    let second = said("{ owners: ['telegram:42', 'discord:ann'] }");
    assert!(second.contains("tools.approvals.owners[1]: this does not prove"), "{second}");
    for chat in ["42", "telegram:", "email:me@example.org", "nonsense:1", ":1"] {
        let said = said(&format!("{{ sendTo: '{chat}' }}"));
        assert!(
            said.contains("tools.approvals.sendTo: expected a chat as `channel:id`"),
            "{chat}: {said}"
        );
    }
}

#[test]
fn text_that_is_no_json5_is_explained() {
    for (text, expected) in [
        ("{\n  agent: {}\n  gateway: {}\n}", "3:3: expected a comma; is one missing before this?"),
        ("{\n  agent: {\n    maxRetries: 1\n", "2:10: this object is not closed; a `}` is missing"),
        (
            "{ channels: { telegram: { allowedChatIds: [1",
            "1:43: this list is not closed; a `]` is missing",
        ),
        (
            "{ agent: { workspaceDir: \"~/x } }\n",
            "1:34: the line ends within a string; the closing quote is missing; a line end is written `\\n`",
        ),
        (
            "{ agent: { workspaceDir: \"~/x",
            "1:30: the file ends within a string; the closing quote is missing",
        ),
        ("{\n /* open", "2:2: this comment is not closed; a `*/` is missing"),
        (
            "{ agent = {} }",
            "1:9: expected a colon between key and value; a key with other characters than letters, digits, `_` and `$` needs quotes",
        ),
        ("{ agent: yes }", "1:10: expected a value; strings need quotes"),
        (
            "{ my-key: 1 }",
            "1:5: expected a colon between key and value; a key with other characters than letters, digits, `_` and `$` needs quotes",
        ),
        (
            "{ my-key=1 }",
            "1:5: expected a colon between key and value; a key with other characters than letters, digits, `_` and `$` needs quotes",
        ),
        ("{ agent: { maxRetries: } }", "1:24: expected a value; strings need quotes"),
        (
            "{ agent: { workspaceDir: \"~/x,\n maxRetries: 1, 'a': \"y\" } }",
            "1:31: the line ends within a string; the closing quote is missing; a line end is written `\\n`",
        ),
        (
            "{ agent: { workspaceDir: 'two\n lines' } }",
            "1:30: the line ends within a string; the closing quote is missing; a line end is written `\\n`",
        ),
        (
            "{ agent: { maxRetries: 1 maxIterations: 2 } }",
            "1:26: expected a comma; is one missing before this?",
        ),
        (
            "{ agent: {} } }",
            "1:15: expected the end of the file; the config is one object, `{ … }`",
        ),
        ("", "1:1: the file is empty; the config is one object, `{ … }`"),
        (" \n\t\n", "1:1: the file is empty; the config is one object, `{ … }`"),
        (
            "// nothing but this\n",
            "1:20: the file ends where a value is expected; the config is one object, `{ … }`",
        ),
        ("{ agent: { maxRetries: 012 } }", "1:24: a number may not begin with 0"),
        ("{ agent: { maxRetries: 1.2.3 } }", "1:24: malformed number or escape"),
        ("{ agent: { maxRetries: Infinity } }", "1:24: agent.maxRetries: expected a finite number"),
        (
            "{ agent: { workspaceDir: '\\u12' } }",
            "1:27: unknown escape in a string; a backslash itself is written `\\\\`",
        ),
        (
            "{\n  agent: {},\n  agent: {}\n}",
            "3:3: agent: this key appears twice; it is on line 2 already; keep one of the two",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    assert_eq!(message(&"[".repeat(100_000)), "1:129: nested deeper than 128 objects and lists");
}

#[test]
fn all_mistakes_are_reported_at_once_in_the_order_of_the_file() {
    let home =
        Home::with_config("{\n  gateway: { port: 'x' },\n  agent: { maxRetries: -1, foo: 1 },\n}");
    assert_eq!(
        home.error(),
        "~/.myclaw/myclaw.json:2:20: gateway.port: expected an integer from 1 to 65535, found a string; write it \
         without quotes; a `${VAR}` reference always gives a string\n\
         ~/.myclaw/myclaw.json:3:24: agent.maxRetries: expected 0 or a positive integer, found -1\n\
         ~/.myclaw/myclaw.json:3:28: agent.foo: unknown key; known here: `workspaceDir`, `maxIterations`, \
         `maxRetries`, `maxToolResultChars`"
    );
    let error = home.load().unwrap_err();
    let locations: Vec<_> =
        error.report().unwrap().issues().iter().map(|issue| issue.location.unwrap()).collect();
    assert_eq!(
        locations,
        [
            Location { line: 2, column: 20 },
            Location { line: 3, column: 24 },
            Location { line: 3, column: 28 }
        ]
    );
}

#[test]
fn no_more_mistakes_are_reported_than_a_person_reads() {
    let many: String = (0..1000).map(|number| format!("wrong{number}: 1,\n")).collect();
    let error = Home::with_config(format!("{{\n{many}}}")).load().unwrap_err();
    assert_eq!(error.report().unwrap().issues().len(), 20);
}

#[test]
fn the_line_is_shown_with_a_mark_below() {
    let home = Home::with_config(
        "{\n  provider: {\n    name: 'a', model: 'm', authProfile: [],\n  },\n}\n",
    );
    assert_eq!(
        home.rendered_error(),
        "error: provider.authProfile: unknown key\n \
         --> ~/.myclaw/myclaw.json:3:28\n  \
           |\n\
         3 |     name: 'a', model: 'm', authProfile: [],\n  \
           |                            ^^^^^^^^^^^ did you mean `authProfiles`?"
    );
    let coloured = home.load().unwrap_err().render(RenderStyle::Coloured);
    assert!(coloured.contains("\u{1b}["), "{coloured}");
}

#[test]
fn columns_count_characters_and_windows_line_ends_are_fine() {
    let text =
        "\u{feff}{\r\n  // größe\r\n  agent: { workspaceDir: 'ключ', maxRetrys: 1 },\r\n}\r\n";
    assert_eq!(message(text), "3:34: agent.maxRetrys: unknown key; did you mean `maxRetries`?");
    assert!(!Home::with_config(text).rendered_error().contains('\r'));
}

#[test]
fn a_key_cannot_steer_the_terminal() {
    let home = Home::with_config("{ '\\u001b[2J': 1, \"\u{1b}[31m\": 2 }");
    assert!(!home.error().contains('\u{1b}'));
    assert!(!home.rendered_error().contains('\u{1b}'));
}

#[test]
fn a_secret_is_in_no_message() {
    const SECRET: &str = "hunter2";
    for text in [
        "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: 'hunter2', extra: 1 }] } }",
        "{ models: { providers: { a: { headers: { 'x-key': 'hunter2' }, extra: 1 } } } }",
        "{ models: { providers: { a: { headers: { 'x key': 'hunter2' } } } } }",
        "{ models: { providers: { a: { headers: { 'x-key': ['hunter2'] } } } } }",
        "{ provider: { name: 'a', model: 'm', authProfiles: ['hunter2'] } }",
        "{ provider: { name: 'a', model: 'm', authProfiles: 'hunter2' } }",
        "{ provider: { name: 'a', model: 'm', apikey: 'hunter2' } }",
        "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: ['hunter2'] }] } }",
        "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: 'hunter2 }] } }\n",
        "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: hunter2 }] } }",
        "{ provider: { name: 'a', model: 'm', authProfiles: [{ id: 'x', apiKey: 'hunter2' }, { id: 'x', apiKey: 'hunter2' }] } }",
        "{ gateway: { token: 'hunter2', port: -1 } }",
        "{ gateway: { token: 'hunter2' }, gateway: { token: 'hunter2' } }",
        "{ channels: { telegram: { botTokn: 'hunter2' } } }",
        "{ provider: { name: 'a', model: 'm', baseUrl: 'ftp://me:hunter2@h', authProfiles: [] } }",
        "{ gateway: { port: '${SECRET}' }, logging: { level: '${SECRET}' }, agents: { defaults: { model: '${SECRET}' } } }",
        "{ gateway: { token: '${SECRET}', port: '${UNSET}' } }",
    ] {
        let error = Home::with_config(text).variable("SECRET", SECRET).load().unwrap_err();
        for shown in [
            error.to_string(),
            format!("{error:?}"),
            error.render(RenderStyle::Plain),
            error.render(RenderStyle::Coloured),
        ] {
            assert!(!shown.contains(SECRET), "{text}\n{shown}");
        }
    }
}

#[test]
fn errors_without_a_place_are_rendered_too() {
    let home = Home::new();
    assert_eq!(
        home.rendered_error(),
        "error: no config file at ~/.myclaw/myclaw.json: `myclaw init` writes one to start from"
    );
    assert!(
        matches!(home.load(), Err(ConfigError::NotFound { path }) if path == home.config_file())
    );
}
