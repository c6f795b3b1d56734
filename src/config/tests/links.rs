//! Links with more than one experiment in them.

use super::*;
use crate::device::DeviceKind;

fn codes(steps: usize) -> Expectation {
    Expectation { backend: DeviceKind::Cpu, codes: "aZ_-9".chars().cycle().take(steps).collect() }
}

/// What a link with a second configuration gives, without the note on a missing check code.
fn read(link: &str) -> (Link, Vec<(String, NoteKind)>) {
    let mut outcome = read_link(link, REGISTRY);
    outcome.notes.retain(|note| note.field != "c");
    assert_usable(&outcome.link.config);
    outcome.link.other.iter().for_each(assert_usable);
    (outcome.link, outcome.notes.into_iter().map(|note| (note.field, note.kind)).collect())
}

#[test]
fn a_second_configuration_is_written_by_its_differences_from_the_first() {
    let config =
        ExperimentConfig { gamma: 0.5, seed: 4, title: "two".to_owned(), ..ExperimentConfig::defaults("maze", REGISTRY) };
    let other = ExperimentConfig { gamma: 1.0, seed: 9, loss_mask: false, title: "else".to_owned(), ..config.clone() };
    let link = Link { config: config.clone(), other: Some(other.clone()), seeds: 3, expectation: Some(codes(4)) };
    let text = write_link(&link, REGISTRY).unwrap();
    let expected = "v=1&env=maze&seed=4&gamma=0.5&b.gamma=1&b.mask=0&seeds=3&title=two&repro=cpu.aZ_-&c=";
    assert!(text.starts_with(expected), "{text}");
    let same = ExperimentConfig { seed: 4, title: "two".to_owned(), ..other };
    assert_eq!(read(&text), (Link { other: Some(same), ..link.clone() }, Vec::new()));
    assert_eq!(from_link(&text, REGISTRY), ReadOutcome { config: config.clone(), notes: Vec::new() });
    let seed_only = Link { other: Some(ExperimentConfig { seed: 5, ..config.clone() }), ..config.clone().into() };
    assert_eq!(write_link(&seed_only, REGISTRY), Some(to_link(&config, REGISTRY)), "a seed alone is no other configuration");
}

#[test]
fn a_second_configuration_can_be_of_another_environment() {
    let mut config = ExperimentConfig::defaults("maze", REGISTRY);
    config.learning_rate = 0.01;
    config.parameters.insert("rooms", Value::Number(4.0));
    let mut other = with_environment(&config, "market", REGISTRY);
    other.parameters.insert("wind", Value::Number(3.0));
    let link = Link { other: Some(other), ..config.into() };
    let text = write_link(&link, REGISTRY).unwrap();
    assert!(text.starts_with("v=1&env=maze&seed=0&lr=0.01&rooms=4&b.env=market&b.wind=3&c="), "{text}");
    assert_eq!(read(&text), (link, Vec::new()));
}

#[test]
fn configurations_that_differ_in_too_much_have_no_link() {
    let (maze, plain) = (longest(&MAZE, REGISTRY), ExperimentConfig::defaults("maze", REGISTRY));
    assert_eq!(write_link(&Link { other: Some(plain), ..maze.clone().into() }, REGISTRY), None);
    let alone = Link { seeds: SEEDS_LIMIT, ..maze.clone().into() };
    assert_eq!(write_link(&alone, REGISTRY).map(|text| text.len() <= LINK_LIMIT), Some(true), "one experiment has its link");
    let few = Link { other: Some(ExperimentConfig { gamma: 0.5, title: String::new(), ..maze.clone() }), ..maze.into() };
    assert_eq!(write_link(&few, REGISTRY).map(|text| text.len() <= LINK_LIMIT), Some(true), "few differences fit");
}

#[test]
fn bad_fields_of_the_second_configuration_are_named_as_its_own() {
    let fields =
        "v=1&env=maze&gamma=0.5&b.gamma=7&b.groups=x&b.b.gamma=1&b.__proto__=1&b.seed=3&b.title=t&b.lr&b.mask=0&b.mask=1";
    let (link, notes) = read(fields);
    let expected = [
        ("b.lr", NoteKind::Syntax),
        ("b.gamma", NoteKind::Clamped),
        ("b.groups", NoteKind::Refused),
        ("b.b.gamma", NoteKind::Unknown),
        ("b.__proto__", NoteKind::Unknown),
        ("b.seed", NoteKind::Refused),
        ("b.title", NoteKind::Refused),
        ("b.loss_mask", NoteKind::Duplicate),
    ];
    assert_eq!(notes, expected.map(|(field, kind)| (field.to_owned(), kind)));
    assert_eq!(link.other, Some(ExperimentConfig { gamma: 1.0, loss_mask: false, ..link.config }));
    let note = read_link(fields, REGISTRY).notes.into_iter().find(|note| note.field == "b.gamma").unwrap();
    assert_eq!(note.text_en, "b.gamma: 7 is not a number from 0 to 1 with at most 6 digits; 1 is used instead.");
    assert!(note.text_zh.starts_with("b.gamma："), "{}", note.text_zh);
}

#[test]
fn a_second_configuration_that_equals_the_first_is_none() {
    for fields in ["v=1&gamma=0.5&b.gamma=0.5", "v=1&b.env=castle", "v=1&b.gamma=x"] {
        let (link, notes) = read(fields);
        assert_eq!(link.other, None, "{fields}");
        assert_eq!(notes.last(), Some(&("b".to_owned(), NoteKind::Refused)), "{fields}");
    }
}

#[test]
fn seeds_and_expectations_are_bounded() {
    let cases = [
        ("seeds=3", 3, None),
        ("seeds=1", 1, None),
        ("seeds=6", 5, Some(NoteKind::Clamped)),
        ("seeds=0", 1, Some(NoteKind::Clamped)),
        ("seeds=-2", 1, Some(NoteKind::Clamped)),
        ("seeds=1e309", 5, Some(NoteKind::Clamped)),
        ("seeds=2.5", 1, Some(NoteKind::Refused)),
        ("seeds=NaN", 1, Some(NoteKind::Refused)),
        ("seeds=", 1, Some(NoteKind::Refused)),
        ("seeds=0x10", 1, Some(NoteKind::Refused)),
        ("seeds=2&seeds=4", 2, Some(NoteKind::Duplicate)),
    ];
    for (fields, seeds, kind) in cases {
        let (link, notes) = read(&format!("v=1&{fields}"));
        assert_eq!((link.seeds, notes), (seeds, kind.map(|kind| ("seeds".to_owned(), kind)).into_iter().collect()), "{fields}");
    }
    for text in ["", "cpu", "cpu.", "gpu.AAA", "cpu.A+A", "cpu.漢", "CPU.A", &format!("cpu.{}", "A".repeat(101))] {
        let (link, notes) = read(&format!("v=1&repro={text}"));
        assert_eq!((link.expectation, notes), (None, vec![("repro".to_owned(), NoteKind::Refused)]), "{text}");
    }
    for expectation in [codes(1), codes(100), Expectation { backend: DeviceKind::Webgpu, ..codes(7) }] {
        let link = Link { expectation: Some(expectation), ..ExperimentConfig::defaults("maze", REGISTRY).into() };
        assert_eq!(read(&write_link(&link, REGISTRY).unwrap()), (link, Vec::new()));
    }
}

#[test]
fn a_recipe_is_read_as_its_settings_and_said_so() {
    let (link, notes) = read("v=1&env=maze&epsilon=0.1&recipe=dapo&b.recipe=ppo&b.gamma=1");
    assert_eq!(notes, ["recipe", "b.recipe"].map(|field| (field.to_owned(), NoteKind::Expanded)));
    let dapo = with_recipe(&ExperimentConfig::defaults("maze", REGISTRY), "dapo", REGISTRY).unwrap();
    assert_eq!(link.config, ExperimentConfig { epsilon: 0.1, ..dapo }, "fields come on top wherever they stand");
    let ppo = with_recipe(&link.config, "ppo", REGISTRY).unwrap();
    assert_eq!(link.other, Some(ExperimentConfig { gamma: 1.0, ..ppo }));
    let json = from_json(r#"{"gamma": 1, "recipe": "dapo", "environment": "maze"}"#, REGISTRY);
    assert_eq!((json.config.epsilon_high, json.config.gamma, json.notes[0].kind), (0.28, 1.0, NoteKind::Expanded));
    let (_, unknown) = read("v=1&recipe=soup&recipe=ppo");
    let expected = [("recipe", NoteKind::Refused), ("recipe", NoteKind::Duplicate)];
    assert_eq!(unknown, expected.map(|(field, kind)| (field.to_owned(), kind)));
}
