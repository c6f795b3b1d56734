//! Links that have been given away: those of `tests/links` load for ever, and no damage makes one silently another experiment.

use serde_json::Value as Json;
use turnwise::config::{ExperimentConfig, LINK_LIMIT, Link, LinkOutcome, SETTINGS, check, read_link, write_link};
use turnwise::environment::REGISTRY;

/// The lines of `tests/links/links.jsonl`; what they hold is said in `tests/README.md`.
fn corpus() -> Vec<Json> {
    let text = std::fs::read_to_string(crate::root().join("tests/links/links.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn link_of(entry: &Json) -> String {
    let repeat = entry["repeat"].as_u64().unwrap_or(1) as usize;
    entry["link"].as_str().unwrap().repeat(repeat)
}

/// Panics unless both configurations can be run.
fn assert_usable(link: &Link) {
    for config in std::iter::once(&link.config).chain(&link.other) {
        let checked = check(config, REGISTRY);
        assert_eq!(checked.notes, []);
        assert_eq!(checked.config, *config);
    }
}

/// The value of a setting as JSON, the parameters of the environment included.
fn value_of(config: &ExperimentConfig, name: &str) -> Json {
    let json = serde_json::to_value(config).unwrap();
    json.get(name).or_else(|| json["parameters"].get(name)).cloned().unwrap_or(Json::Null)
}

fn assert_values(config: &ExperimentConfig, expected: &Json, what: &str) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&value_of(config, name), value, "{what}: {name}");
    }
}

#[test]
fn every_link_of_the_corpus_loads_as_it_always_did() {
    let corpus = corpus();
    assert!(corpus.len() >= 25, "only {} links", corpus.len());
    for environment in REGISTRY {
        assert!(corpus.iter().any(|entry| entry["config"]["environment"] == environment.name), "{}: no link", environment.name);
    }
    for entry in &corpus {
        let (name, text) = (entry["name"].as_str().unwrap(), link_of(entry));
        let LinkOutcome { link, notes } = read_link(&text, REGISTRY);
        assert_usable(&link);
        assert_values(&link.config, &entry["config"], name);
        assert_eq!(link.other.is_some(), entry.get("other").is_some(), "{name}: second configuration");
        if let Some(other) = &link.other {
            assert_values(other, &entry["other"], &format!("{name}, second configuration"));
        }
        assert_eq!(Json::from(link.seeds), entry.get("seeds").cloned().unwrap_or_else(|| 1.into()), "{name}: seeds");
        assert_eq!(serde_json::to_value(&link.expectation).unwrap(), entry["expectation"], "{name}: expectation");
        if let Some(count) = entry["noteCount"].as_u64() {
            assert_eq!(notes.len() as u64, count, "{name}");
        } else {
            let fields: Vec<&str> = notes.iter().map(|note| note.field.as_str()).collect();
            assert_eq!(
                Json::from(fields),
                entry.get("notes").cloned().unwrap_or_else(|| Json::Array(Vec::new())),
                "{name}: notes"
            );
        }
        // What was made by this program is still written the same.
        if notes.is_empty() {
            assert_eq!(write_link(&link, REGISTRY), Some(text.clone()), "{name}");
            assert!(text.len() <= LINK_LIMIT, "{name}: {} characters", text.len());
        }
    }
}

/// Panics where a damaged link cannot be used, or is another experiment without a word.
fn assert_told(damaged: &str, original: &Link) {
    let LinkOutcome { link, notes } = read_link(damaged, REGISTRY);
    assert_usable(&link);
    assert!(link == *original || !notes.is_empty(), "silently another experiment: {damaged}");
}

#[test]
fn t_22_a_link_cut_or_changed_in_one_character_is_usable_and_never_silently_another_experiment() {
    let corpus = corpus();
    for name in ["comparison with expectation", "title of signs", "calculator"] {
        let entry = corpus.iter().find(|entry| entry["name"] == name).unwrap();
        let text = link_of(entry);
        let LinkOutcome { link, notes } = read_link(&text, REGISTRY);
        assert_eq!(notes, [], "{name}");
        for place in 0..text.len() {
            if place > 0 {
                assert_told(&text[..place], &link);
            }
            for replacement in ["", "0", "7", ".", "%", "&", "=", "#", "b", "漢", "🙂"] {
                assert_told(&format!("{}{replacement}{}", &text[..place], &text[place + 1..]), &link);
            }
        }
    }
}

#[test]
fn t_1_hostile_values_and_keys_are_named_and_nothing_else_changes() {
    let values = [
        "1e309",
        "-1e309",
        "NaN",
        "-0",
        "0x10",
        "",
        "-1",
        "1000000",
        "Infinity",
        "1e-400",
        "constructor",
        "%00",
        "<b>",
        "javascript:alert(1)",
    ];
    for environment in REGISTRY {
        let plain = ExperimentConfig::defaults(environment.name, REGISTRY);
        for setting in SETTINGS.iter().chain(environment.settings) {
            for value in values {
                for prefix in ["", "b."] {
                    let text = format!("v=1&env={}&{prefix}{}={value}", environment.name, setting.name);
                    let LinkOutcome { link, notes } = read_link(&text, REGISTRY);
                    assert_usable(&link);
                    let changed = link.other.as_ref().unwrap_or(&link.config);
                    let differs = changed.value(setting.name) != plain.value(setting.name);
                    let field = format!("{prefix}{}", setting.name);
                    // The note on the missing check code stands beside it.
                    let named = notes.iter().any(|note| note.field == field);
                    assert!(differs || named || changed.value(setting.name).is_some_and(|own| own.to_string() == "0"), "{text}");
                    assert!(prefix.is_empty() || link.config == plain, "{text}: the first configuration is as it was");
                }
            }
        }
    }
    for key in ["__proto__", "constructor", "b.__proto__", "b.b.gamma", "b.", ".", "toString", "gamma ", "GAMMA", "b.c", "b.v"] {
        let LinkOutcome { link, notes } = read_link(&format!("v=1&{key}=1"), REGISTRY);
        assert_eq!(link, Link::from(ExperimentConfig::defaults("search", REGISTRY)), "{key}");
        assert!(notes.iter().any(|note| note.field == key), "{key}: {notes:?}");
    }
}

#[test]
fn t_24_no_link_is_longer_than_the_limit() {
    let corpus = corpus();
    let longest =
        corpus.iter().map(link_of).filter(|link| read_link(link, REGISTRY).notes.is_empty()).map(|link| link.len()).max();
    assert!(longest.is_some_and(|length| (1300..=LINK_LIMIT).contains(&length)), "{longest:?}");
}
