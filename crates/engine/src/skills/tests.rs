use super::*;

fn skills(count: usize, description_chars: usize) -> Vec<SkillSummary> {
    (0..count)
        .map(|number| SkillSummary {
            name: format!("skill-{number:03}"),
            description: "ä".repeat(description_chars),
            file: PathBuf::from("/s/SKILL.md"),
        })
        .collect()
}

#[test]
fn a_hundred_skills_are_listed_and_the_others_counted() {
    assert_eq!(listed_skills(&skills(100, 10)).len(), 100);
    assert_eq!(skills_left_out(&skills(100, 10)), None);
    let many = skills(103, 10);
    assert_eq!(listed_skills(&many), &many[..100]);
    assert_eq!(skills_left_out(&many), Some(Notice::SkillsLeftOut { listed: 100, left_out: 3 }));
}

#[test]
fn the_list_has_at_most_20_000_characters() {
    let long = skills(50, 1_000);
    let listed = listed_skills(&long);
    let chars: usize = listed.iter().map(|skill| skill.line().chars().count()).sum();
    assert!((19_000..=20_000).contains(&chars), "{chars}");
    assert_eq!(
        skills_left_out(&long),
        Some(Notice::SkillsLeftOut { listed: listed.len(), left_out: 50 - listed.len() })
    );
}
