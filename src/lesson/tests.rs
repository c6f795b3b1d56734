use std::collections::BTreeSet;

use super::*;
use crate::config::{WarmStart, recipe_of};
use crate::environment::{EXTRA_WARM_STARTS, warm_start_name};

fn sides(lesson: &Lesson) -> impl Iterator<Item = Overrides> {
    [Some(lesson.settings), lesson.other].into_iter().flatten()
}

#[test]
fn every_override_is_a_setting_within_bounds_that_differs_from_the_default() {
    for lesson in lessons() {
        let defaults = ExperimentConfig::defaults(lesson.environment, REGISTRY);
        assert_eq!(defaults.environment, lesson.environment, "{}: no such task", lesson.name);
        for settings in sides(lesson) {
            let (config, notes) = lesson.read(settings);
            assert_eq!(notes, [], "{}", lesson.name);
            for (name, value) in settings {
                let own = config.value(name).unwrap_or_else(|| panic!("{}: no setting {name}", lesson.name));
                assert_eq!(own.to_string(), *value, "{}: {name}", lesson.name);
                assert_ne!(Some(own), defaults.value(name), "{}: {name} is the default", lesson.name);
            }
            let changed = config::differences(&defaults, &config, REGISTRY);
            assert_eq!(changed.len(), settings.len(), "{}: {changed:?}", lesson.name);
        }
        if let Some(other) = lesson.other {
            let differ = config::differences(&lesson.config(), &lesson.read(other).0, REGISTRY);
            assert!(!differ.is_empty(), "{}: nothing to compare", lesson.name);
        }
    }
}

#[test]
fn every_link_reads_back_as_the_same_lesson_whatever_its_seed() {
    for lesson in lessons() {
        let mut link = lesson.link();
        link.config.seed = 3;
        link.other.iter_mut().for_each(|other| other.seed = 3);
        let fragment = config::write_link(&link, REGISTRY).unwrap_or_else(|| panic!("{}: too long", lesson.name));
        let read = config::read_link(&fragment, REGISTRY);
        assert_eq!((&read.link, read.notes.as_slice()), (&link, &[][..]), "{}", lesson.name);
        assert_eq!(lesson_of(&read.link.config).map(|found| found.name), Some(lesson.name), "another has its settings");
    }
    assert_eq!(lesson_of(&ExperimentConfig { gamma: 0.37, ..ExperimentConfig::defaults("search", REGISTRY) }), None);
}

#[test]
fn the_page_opens_on_the_first_lesson() {
    let first = lessons().next().map(|lesson| lesson.name);
    assert_eq!(lesson_of(&config::from_link("", REGISTRY).config).map(|found| found.name), first);
}

#[test]
fn names_are_unique_and_texts_are_there_in_both_languages() {
    let mut names = BTreeSet::new();
    for lesson in lessons() {
        assert!(names.insert(lesson.name), "{} twice", lesson.name);
        assert!(lesson.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", lesson.name);
        for text in [lesson.title, lesson.press, lesson.watch, lesson.meaning, lesson.evidence] {
            assert!(text.en.len() > 8 && text.zh.chars().count() > 3, "{}: {text:?}", lesson.name);
            assert!(text.en.chars().all(|c| c.is_ascii() || "γ“”’−±×·".contains(c)), "{}: {}", lesson.name, text.en);
            assert!(text.zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{}: {}", lesson.name, text.zh);
            assert!(!text.en.contains("  ") && !text.zh.contains("  ") && !text.en.contains('@'), "{}: {}", lesson.name, text.en);
        }
        assert!(lesson.evidence.en.contains("seeds"), "{}: how often was it tried?", lesson.name);
        assert_eq!(super::lesson(lesson.name), Some(lesson));
    }
    assert!(super::lesson("nonsense").is_none());
}

#[test]
fn every_topic_has_a_lesson() {
    for topic in Topic::ALL {
        assert!(lessons().any(|lesson| lesson.topics.contains(&topic)), "{topic:?}");
    }
    assert!(lessons().all(|lesson| !lesson.topics.is_empty()));
}

#[test]
fn quantities_are_those_of_the_page() {
    for lesson in lessons() {
        let known = ["advantage", "return_to_go", "log_prob", "true_credit"].contains(&lesson.quantity);
        let method = lesson.quantity.strip_prefix("method:");
        let declared = |word: &str| config::CreditMethod::OPTIONS.iter().any(|option| option.value == word);
        assert!(known || method.is_some_and(declared), "{}: {}", lesson.name, lesson.quantity);
    }
}

#[test]
fn warm_starts_that_lessons_begin_from_ship_with_the_page() {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), std::path::PathBuf::from);
    let folder = root.join("www/public/warm-start");
    let ships = |name: &str| folder.join(format!("{name}.safetensors")).is_file();
    let mut used = BTreeSet::new();
    for lesson in lessons() {
        for config in [Some(lesson.config()), lesson.other_config()].into_iter().flatten() {
            if config.warm_start == WarmStart::Shipped {
                let name = warm_start_name(&config);
                assert!(ships(name), "{}: {name}.safetensors is missing", lesson.name);
                used.insert(name);
            }
        }
    }
    for extra in EXTRA_WARM_STARTS {
        assert!(ships(extra.name) && used.contains(extra.name), "{} ships for no lesson", extra.name);
    }
}

/// A lesson on a demonstrator or on documents of its own begins from a checkpoint that was made with them.
#[test]
fn lessons_with_other_demonstrations_have_checkpoints_of_their_own() {
    for lesson in lessons() {
        let defaults = ExperimentConfig::defaults(lesson.environment, REGISTRY);
        for settings in sides(lesson) {
            let config = lesson.read(settings).0;
            let shapes = ["context_length", "d_model", "layers", "heads", "random_tokens", "pages"];
            let task = crate::environment::declaration(&config);
            let shown = task.settings.iter().filter(|setting| setting.section == config::Section::WarmStart);
            let other = shapes
                .into_iter()
                .chain(shown.map(|setting| setting.name))
                .any(|name| config.value(name) != defaults.value(name));
            assert_eq!(warm_start_name(&config) != task.name, other, "{}", lesson.name);
        }
    }
}

#[test]
fn the_recipes_of_the_comparison_are_those_of_the_papers() {
    let lesson = super::lesson("ppo-dpo-grpo").expect("it is a lesson");
    assert_eq!(recipe_of(&lesson.config(), REGISTRY), Some("ppo"));
    assert_eq!(lesson.other_config().and_then(|config| recipe_of(&config, REGISTRY)), Some("dpo"));
}
