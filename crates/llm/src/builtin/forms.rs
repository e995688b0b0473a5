//! What the demo planner understands, as data. The parser, the help text and the documentation's table come from here.

/// A kind of request.
#[derive(Debug)]
pub(super) struct Form {
    /// What it does, to follow "I can".
    pub(super) does: &'static str,
    /// One way to say it; the help text shows it.
    pub(super) example: &'static str,
    /// Every way to say it (the language is described in `pattern`).
    pub(super) variants: &'static [Variant],
}

/// One way to say something.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) meaning: Meaning,
    pub(super) pattern: &'static str,
}

/// What a variant asks for; its slots say of what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    List,
    Find,
    Search,
    Read,
    ReadFirst,
    ReadOneLine,
    CountEntries,
    CountNamed,
    CountLines,
    CountWords,
    CountMatches,
    Run,
    /// A command without quotes, which is not run: nobody said where it ends.
    RunUnquoted,
    Write,
    WriteNote,
    AskWho,
    AskHelp,
}

const fn variant(meaning: Meaning, pattern: &'static str) -> Variant {
    Variant { meaning, pattern }
}

/// Words that join requests.
pub(super) const JOINERS: &[&str] = &["then", "and", "next", "afterwards"];

/// What people say before a request; taken off word by word.
pub(super) const POLITE_BEFORE: &[&str] = &[
    "please",
    "kindly",
    "can you",
    "could you",
    "would you",
    "will you",
    "can i",
    "i want you to",
    "i want to",
    "i would like you to",
    "i'd like you to",
    "i'd like to",
    "let's",
    "just",
    "hey",
    "hi",
    "hello",
    "ok",
    "okay",
    "now",
    "first",
    "then",
    "and",
    "next",
    "finally",
    "afterwards",
    "also",
    "myclaw",
];

/// What people say behind a request.
pub(super) const POLITE_BEHIND: &[&str] =
    &["please", "for me", "thanks", "thank you", "now", "again", "too"];

/// The forms in the order in which they are tried and shown.
pub(super) const FORMS: &[Form] = &[LIST, FIND, SEARCH, READ, COUNT, RUN, WRITE];

const LIST: Form = Form {
    does: "list the files in a folder (the workspace unless you name one)",
    example: "list the files in docs",
    variants: &[
        variant(Meaning::List, "ls|dir [{folder}]"),
        variant(
            Meaning::List,
            "list|show|display|give [me] [all] [of] [the|my] files|file|folders|directories|contents|content|entries|\
             everything [and] [folders|directories|files] [that] [are|is|i] [have] [in|of|inside|under|from] {folder}",
        ),
        variant(
            Meaning::List,
            "list|show|display|give [me] [all] [of] [the|my] files|file|folders|directories|contents|content|entries|\
             everything [and] [folders|directories|files] [there] [are|is]",
        ),
        variant(
            Meaning::List,
            "what|which files|file|folders|entries [are|do] [there|we|you|i] [have|see] [in|inside|under] [{folder}]",
        ),
        variant(Meaning::List, "what is|are in|inside|under {plain-folder}"),
        variant(Meaning::List, "what's|whats in|inside|under {plain-folder}"),
        variant(Meaning::List, "show|open [me] {said-folder}"),
        variant(Meaning::List, "list [{plain-folder}]"),
    ],
};

const FIND: Form = Form {
    does: "find files by name or pattern",
    example: "find *.md in docs",
    variants: &[
        variant(
            Meaning::Find,
            "find|locate|list|show [me] [all] [of] [the|my|any] {kind} files|documents [in|inside|under|from] [{folder}]",
        ),
        variant(
            Meaning::Find,
            "find|locate [me] [all] [the|my|any|a|every] [file|files] {glob} [file|files] [in|inside|under|from] [{folder}]",
        ),
        variant(
            Meaning::Find,
            "list|show [me] [all] [the|my] {glob} files [in|inside|under|from] [{folder}]",
        ),
        variant(
            Meaning::Find,
            "find|locate [me] [all] [the|my|any|a] file|files|folder|folders [that|which] [is|are] \
             named|called|matching|like {name} [in|inside|under|from] [{folder}]",
        ),
        variant(
            Meaning::Find,
            "find|locate [me] [all] [the|my|any] files [that|which] ending|end|ends with|in {extension} \
             [in|inside|under|from] [{folder}]",
        ),
        variant(Meaning::Find, "where is|are [the|my] [file] {glob} [in|inside|under] [{folder}]"),
        variant(
            Meaning::Find,
            "which|what files are named|called|like {name} [in|inside|under|from] [{folder}]",
        ),
        variant(
            Meaning::Find,
            "find|locate [all] [the|my] files [in|inside|under|from] [{folder}]",
        ),
    ],
};

const SEARCH: Form = Form {
    does: "search for a text in files",
    example: "search for TODO in src",
    variants: &[
        variant(
            Meaning::Search,
            "search|grep|look|scan [for] [the] [text|word|words|phrase|string] {text} \
             in|inside|within|under|through|across [the] [file] {folder}",
        ),
        variant(
            Meaning::Search,
            "search|grep|look|scan [in|through] {folder} for [the] [text|word|words|phrase|string] {text}",
        ),
        variant(Meaning::Search, "grep {word} {folder}"),
        variant(
            Meaning::Search,
            "search|grep|look|scan for [the] [text|word|words|phrase|string] {text}",
        ),
        variant(Meaning::Search, "search|grep {text}"),
        variant(
            Meaning::Search,
            "which|what files|file|lines [in] {folder} contain|contains|mention|mentions|have|has [the] [text|word] {text}",
        ),
        variant(
            Meaning::Search,
            "which|what files|file|lines contain|contains|mention|mentions|have|has [the] [text|word] {text} \
             in|inside|under [the] [file] {folder}",
        ),
        variant(
            Meaning::Search,
            "which|what files|file|lines contain|contains|mention|mentions|have|has [the] [text|word] {text}",
        ),
        variant(
            Meaning::Search,
            "find|show|list [me] [all] [the] files|lines|mentions|mention|occurrences|matches|uses|places [that|which] \
             of|for|with|containing|contain|mentioning|mention [the] [text|word] {text} in|inside|under [the] [file] {folder}",
        ),
        variant(
            Meaning::Search,
            "find|show|list [me] [all] [the] files|lines|mentions|mention|occurrences|matches|uses|places [that|which] \
             of|for|with|containing|contain|mentioning|mention [the] [text|word] {text}",
        ),
        variant(
            Meaning::Search,
            "find [the] text|word|words|phrase|string {text} in|inside|under [the] [file] {folder}",
        ),
        variant(Meaning::Search, "find [the] text|word|words|phrase|string {text}"),
        variant(Meaning::Search, "find {quoted} [in|inside|under] [the] [file] [{folder}]"),
        variant(
            Meaning::Search,
            "where is|are [the] [text|word] {text} mentioned|used [in|inside|under] [the] [file] [{folder}]",
        ),
        // By name, but only where nothing above it fits: `find` is mostly followed by more than a word.
        variant(Meaning::Find, "find|locate [the|my] {name} [in|inside|under] [{folder}]"),
    ],
};

const READ: Form = Form {
    does: "read a file, or some of its lines",
    example: "read README.md lines 1-10",
    variants: &[
        variant(
            Meaning::Read,
            "read|open|cat|print|show|display|view [me] [only|just] [the] line|lines {range} [of|from|in] {file}",
        ),
        variant(
            Meaning::Read,
            "read|open|cat|print|show|display|view [me] [only|just] [the] line|lines [from] {number} \
             to|through|and|until|- {number} [of|from|in] {file}",
        ),
        variant(
            Meaning::Read,
            "read|open|cat|print|show|display|view [me] {file} [from] [only|just] [the] line|lines {range}",
        ),
        variant(
            Meaning::Read,
            "read|open|cat|print|show|display|view [me] {file} [from] [only|just] [the] line|lines [from] {number} \
             to|through|and|until|- [line] {number}",
        ),
        variant(
            Meaning::ReadFirst,
            "read|open|cat|print|show|display|view|give [me] [only|just] [the] first|top {number} lines [of|from|in] {file}",
        ),
        variant(
            Meaning::ReadOneLine,
            "read|open|cat|print|show|display|view|give [me] [only|just] [the] line {number} [of|from|in] {file}",
        ),
        variant(
            Meaning::Read,
            "read|open|cat|print|show|display|view|give [me] [all] [of] [the] [contents|content|text] [of] {file}",
        ),
        variant(Meaning::Read, "what does {file} say|contain|hold"),
        variant(Meaning::Read, "what is in|inside {file.ext}"),
        variant(Meaning::Read, "what's|whats in|inside {file.ext}"),
    ],
};

const COUNT: Form = Form {
    does: "count files, the lines or words of a file, or matches of a text",
    example: "count the lines of README.md",
    variants: &[
        variant(Meaning::CountLines, "count [the] [all] [number] [of] lines|line [in|of] {file}"),
        variant(Meaning::CountLines, "how many lines [are|is] [there] [in|of] {file}"),
        variant(Meaning::CountLines, "how many lines does|has {file} [have|contain]"),
        variant(Meaning::CountWords, "count [the] [all] [number] [of] words|word [in|of] {file}"),
        variant(Meaning::CountWords, "how many words [are|is] [there] [in|of] {file}"),
        variant(Meaning::CountWords, "how many words does|has {file} [have|contain]"),
        variant(
            Meaning::CountMatches,
            "count [the] [all] [number] [of] matches|match|occurrences|mentions|lines of|for|with|containing \
             [the] [text|word] {text} in|inside|under|across [the] [file] {folder}",
        ),
        variant(
            Meaning::CountMatches,
            "count [the] [all] [number] [of] matches|match|occurrences|mentions|lines of|for|with|containing \
             [the] [text|word] {text}",
        ),
        variant(
            Meaning::CountMatches,
            "count [the] [text|word] {quoted} [in|inside|under|across] [the] [file] [{folder}]",
        ),
        variant(
            Meaning::CountMatches,
            "how many times|often does|is|do|are [the] [text|word] {text} appear|occur|mentioned|used|found|show \
             [up] [in|inside|under|across] [the] [file] [{folder}]",
        ),
        variant(
            Meaning::CountMatches,
            "how many matches|occurrences|mentions of|for [the] [text|word] {text} [are] [there] \
             in|inside|under|across [the] [file] {folder}",
        ),
        variant(
            Meaning::CountMatches,
            "how many matches|occurrences|mentions [are] [there] of|for [the] [text|word] {text} [are] [there]",
        ),
        variant(
            Meaning::CountMatches,
            "how many lines contain|mention|have [the] [text|word] {text} [in|inside|under|across] [the] [file] [{folder}]",
        ),
        variant(
            Meaning::CountNamed,
            "count [the] [all] [number] [of] [my] {kind} files|documents [in|inside|under|of] [{folder}]",
        ),
        variant(
            Meaning::CountNamed,
            "how many {kind} files|documents [are|do|does] [there|i|we|it] [have|exist] [in|inside|under] [{folder}]",
        ),
        variant(
            Meaning::CountNamed,
            "count [the] [all] [number] [of] [my] {glob} [files] [in|inside|under|of] [{folder}]",
        ),
        variant(
            Meaning::CountNamed,
            "how many {glob} [files] [are|do|does] [there|i|we|it] [have|exist] [in|inside|under] [{folder}]",
        ),
        variant(
            Meaning::CountEntries,
            "count [the] [all] [number] [of] [my] files|entries|folders|everything [and] [folders] [in|inside|under|of] [{folder}]",
        ),
        variant(
            Meaning::CountEntries,
            "how many files|entries|folders [are|do|does] [there|i|we|it] [have|exist] [in|inside|under] [{folder}]",
        ),
        variant(Meaning::CountEntries, "how many files does|has {folder} [have|contain|hold]"),
    ],
};

const RUN: Form = Form {
    does: "run a command that you put in quotes",
    example: "run \"cargo --version\"",
    variants: &[
        variant(Meaning::Run, "run|execute|exec [the] [shell|bash|this] [command] {quoted}"),
        variant(
            Meaning::Run,
            "run|execute|exec [the] [shell|bash|this] [command] {quoted} [with] [a] [timeout|limit] of|for [at] [most] \
             {number} seconds|second|s",
        ),
        variant(Meaning::RunUnquoted, "run|execute|exec {rest}"),
    ],
};

const WRITE: Form = Form {
    does: "write a note or a file",
    example: "write a note: buy milk",
    variants: &[
        variant(
            Meaning::Write,
            "write|save|put|store [the] [text|words|line|note|content] {quoted} to|into|in|as [the|a] [new] {file}",
        ),
        variant(
            Meaning::Write,
            "create|make|write [a|the] [new] {file} with|containing|saying|that [says] [the] [text|content|words|line] {quoted}",
        ),
        variant(
            Meaning::Write,
            "create|make|write [a|the] [new] file|note named|called {file} with|containing|saying [the] \
             [text|content|words|line] {quoted}",
        ),
        variant(
            Meaning::Write,
            "write|take|make|save|add [me] [a|down] [new|quick|short] note|notes in|to|into|as {file.ext} [that|saying|with] {rest}",
        ),
        variant(
            Meaning::WriteNote,
            "write|take|make|save|add|leave [me] [a|down] [new|quick|short] note|notes [down] [for] [me] [that|saying|to] {rest}",
        ),
        variant(Meaning::WriteNote, "note|remember [down] [that] {rest}"),
    ],
};

/// Questions that are answered without a tool.
pub(super) const QUESTIONS: &[Variant] = &[
    variant(Meaning::AskWho, "who|what are you [exactly|really]"),
    variant(Meaning::AskWho, "who|what is this"),
    variant(Meaning::AskWho, "are you [a|an] [real] {rest}"),
    variant(
        Meaning::AskWho,
        "what|which [language] model|llm|ai are|is you|this|it [using|running]",
    ),
    variant(Meaning::AskWho, "what|which [language] model|llm|ai do you use"),
    variant(Meaning::AskWho, "what is|what's your name"),
    variant(Meaning::AskWho, "what's|whats your name"),
    variant(Meaning::AskHelp, "help [me]"),
    variant(Meaning::AskHelp, "what can you do"),
    variant(Meaning::AskHelp, "what do you understand|know"),
];
