use super::*;

fn workflow(name: &str, description: &str) -> Workflow {
    Workflow {
        name: name.to_owned(),
        description: description.to_owned(),
        run: "true".to_owned(),
        args: Vec::new(),
    }
}

#[test]
fn the_workflow_with_the_rare_words_comes_first() {
    let workflows = [
        workflow("weather", "Show the weather forecast for a city"),
        workflow("send-invoice", "Send an invoice to a customer by mail"),
        workflow("list-mails", "List the newest mails of a mailbox"),
    ];
    let found = |query: &str| -> Vec<usize> {
        KeywordRanker.rank(query, &workflows).unwrap().iter().map(|ranked| ranked.index).collect()
    };
    assert_eq!(found("mail the invoices to the customers"), [1, 2]);
    assert_eq!(found("what is the weather in Rome?"), [0]);
    assert_eq!(found("play some music"), [] as [usize; 0]);
    assert_eq!(found(""), [] as [usize; 0]);
    assert!(KeywordRanker.rank("anything", &[]).unwrap().is_empty());
}
