//! Whatever comes in, a usable configuration comes out, and every bad field is named.

use super::*;

/// Three links with all kinds of fields.
fn links() -> [(ExperimentConfig, String); 3] {
    let mut first = ExperimentConfig::defaults("maze", REGISTRY);
    (first.gamma, first.seed, first.reward_mode) = (0.123_456_789, 4_000_000_000, RewardMode::Mixed);
    let mut second =
        ExperimentConfig { title: "漢字 & %41 #\n🙂".to_owned(), ..ExperimentConfig::defaults("market", REGISTRY) };
    (second.loss_mask, second.valid_call_weight, second.learning_rate) = (true, -1.5, 2.5e-6);
    let mut third = ExperimentConfig::defaults("maze", REGISTRY);
    third.parameters.insert("story", Value::Choice("very_long".to_owned()));
    third.parameters.insert("lamp", Value::Switch(true));
    (third.d_model, third.warm_start) = (128, WarmStart::None);
    [first, second, third].map(|config| (config.clone(), to_link(&config, REGISTRY)))
}

fn assert_told(link: &str, original: &ExperimentConfig) {
    let outcome = from_link(link, REGISTRY);
    assert_usable(&outcome.config);
    assert!(outcome.config == *original || !outcome.notes.is_empty(), "silently another experiment: {link}");
}

#[test]
fn a_link_cut_anywhere_is_usable_and_never_silently_another_experiment() {
    for (config, link) in links() {
        for end in 1..link.len() {
            assert_told(&link[..end], &config);
            assert_told(&format!("#{}", &link[..end]), &config);
        }
    }
}

#[test]
fn a_link_with_one_character_changed_is_usable_and_never_silently_another_experiment() {
    for (config, link) in links() {
        for place in 0..link.len() {
            for replacement in ["", "0", "9", "-", "&", "=", "%", "#", "e", "A", "漢", "\0", "+", " "] {
                assert_told(&format!("{}{replacement}{}", &link[..place], &link[place + 1..]), &config);
            }
        }
    }
}

#[test]
fn json_cut_or_changed_anywhere_is_usable() {
    for (config, _) in links() {
        let json = to_json(&config);
        for place in (0..json.len()).filter(|&place| json.is_char_boundary(place) && json.is_char_boundary(place + 1)) {
            for text in [json[..place].to_owned(), format!("{}9{}", &json[..place], &json[place + 1..])] {
                assert_usable(&from_json(&text, REGISTRY).config);
            }
        }
    }
}

/// The only note of a link with a single field, apart from the one on its missing check code.
fn only_note(link: &str) -> Option<Note> {
    let mut outcome = from_link(link, REGISTRY);
    assert_usable(&outcome.config);
    outcome.notes.retain(|note| note.field != "c");
    assert!(outcome.notes.len() < 2, "{:?}", outcome.notes);
    outcome.notes.pop()
}

#[test]
fn a_run_has_at_most_a_hundred_thousand_steps() {
    assert_eq!(only_note("v=1&iters=100000"), None);
    assert_eq!(from_link("v=1&iters=100000", REGISTRY).config.iterations, 100_000);
    let note = only_note("v=1&iters=100001").expect("a note");
    assert_eq!((note.field.as_str(), note.kind, note.used.as_str()), ("iterations", NoteKind::Clamped, "100000"));
    assert_eq!(from_link("v=1&iters=100001", REGISTRY).config.iterations, 100_000);
}

#[test]
fn every_number_given_badly_is_clamped_or_refused_by_name() {
    for (setting, key) in SETTINGS.iter().zip(super::super::experiment::LINK_KEYS) {
        let (low, high) = match setting.kind {
            Kind::Number { min, max, .. } => (min, max),
            Kind::Integer { min, max, .. } => (f64::from(min), f64::from(max)),
            Kind::IntegerChoice { options, .. } => (f64::from(options[0]), f64::from(options[options.len() - 1])),
            _ => continue,
        };
        let long = "9".repeat(5000);
        let nines = format!("0x{long}");
        let far = number_text(high * 1000.0);
        let cases = [
            (far.as_str(), NoteKind::Clamped, Some(high)),
            ("1e309", NoteKind::Clamped, Some(high)),
            (&long, NoteKind::Clamped, Some(high)),
            ("-1e309", NoteKind::Clamped, Some(low)),
            ("-7", NoteKind::Clamped, Some(low)),
            ("NaN", NoteKind::Refused, None),
            ("inf", NoteKind::Refused, None),
            ("", NoteKind::Refused, None),
            ("0x10", NoteKind::Refused, None),
            (&nines, NoteKind::Refused, None),
            ("1,5", NoteKind::Refused, None),
            ("١", NoteKind::Refused, None),
            ("<img src=x onerror=alert(1)>", NoteKind::Refused, None),
        ];
        for (given, kind, used) in cases {
            let note = only_note(&format!("v=1&{key}={given}")).unwrap_or_else(|| panic!("{}={given}: no note", setting.name));
            let used = used.map_or_else(|| setting.default_value(), Value::Number);
            assert_eq!((note.field.as_str(), note.kind), (setting.name, kind), "{given}");
            assert_eq!(note.used, used.to_string(), "{}={given}", setting.name);
            assert!(note.given.chars().count() <= 41, "{}", note.given);
            for text in [&note.text_en, &note.text_zh] {
                assert!(text.contains(setting.name) && text.contains(&number_text(high)), "{text}");
            }
        }
        let zero = only_note(&format!("v=1&{key}=-0"));
        assert_eq!(zero.is_none(), low <= 0.0, "{}=-0: {zero:?}", setting.name);
    }
    assert!(from_link("v=1&beta=-0", REGISTRY).config.beta.is_sign_positive());
}

#[test]
fn each_bad_field_has_its_note_and_the_good_ones_load() {
    let link = "v=2&env=castle&gamma=0.5&gamma=0.6&groups=2.5&reward=Outcome&mask=yes&__proto__=1&rooms=4&lamp=true&lr&\
        title=%zz&story=long";
    let outcome = from_link(link, REGISTRY);
    assert_usable(&outcome.config);
    let told: Vec<_> = outcome.notes.iter().map(|note| (note.field.as_str(), note.kind)).collect();
    let expected = [
        ("environment", NoteKind::Refused),
        ("v", NoteKind::Version),
        ("c", NoteKind::Syntax),
        ("gamma", NoteKind::Duplicate),
        ("groups", NoteKind::Refused),
        ("reward_mode", NoteKind::Refused),
        ("loss_mask", NoteKind::Refused),
        ("__proto__", NoteKind::Unknown),
        ("lr", NoteKind::Syntax),
        ("title", NoteKind::Syntax),
        ("story", NoteKind::Refused),
    ];
    assert_eq!(told, expected);
    assert_eq!((outcome.config.gamma, outcome.config.parameters.integer("rooms")), (0.5, 4));
    assert!(outcome.config.parameters.switch("lamp"));
    assert_eq!(outcome.notes[4].text_en, "groups: \"2.5\" is not a whole number from 1 to 64; 16 is used instead.");
    assert_eq!(outcome.notes[4].text_zh, "groups：“2.5”不是 1 到 64 之间的整数，改用 16。");
}

#[test]
fn full_names_work_in_links_and_count_as_the_same_field() {
    let outcome = from_link("v=1&learning_rate=0.5&lr=0.25", REGISTRY);
    assert_eq!(outcome.config.learning_rate, 0.5);
    assert_eq!(outcome.notes.last().map(|note| (note.field.as_str(), note.kind)), Some(("learning_rate", NoteKind::Duplicate)));
}

#[test]
fn each_bad_json_field_has_its_note_and_the_good_ones_load() {
    let json = r#"{"version": 3, "environment": "market", "gamma": 1e309, "seed": -1, "groups": "4", "beta": null,
        "turn_limit": 2, "loss_mask": 2, "reward_mode": "nothing", "heads": 3, "title": [], "constructor": {}, "turn_limit": 4, "layers": 3.0,
        "parameters": {"wind": 9, "rooms": 3, "__proto__": {"a": 1}}}"#;
    let outcome = from_json(json, REGISTRY);
    assert_usable(&outcome.config);
    let told: Vec<_> = outcome.notes.iter().map(|note| (note.field.as_str(), note.kind, note.used.as_str())).collect();
    let expected = [
        ("version", NoteKind::Version, "1"),
        ("gamma", NoteKind::Clamped, "1"),
        ("seed", NoteKind::Clamped, "0"),
        ("groups", NoteKind::Refused, "16"),
        ("beta", NoteKind::Refused, "0"),
        ("loss_mask", NoteKind::Refused, "0"),
        ("reward_mode", NoteKind::Refused, "outcome"),
        ("heads", NoteKind::Clamped, "2"),
        ("title", NoteKind::Refused, ""),
        ("constructor", NoteKind::Unknown, ""),
        ("turn_limit", NoteKind::Duplicate, ""),
        ("wind", NoteKind::Clamped, "4"),
        ("rooms", NoteKind::Unknown, ""),
        ("__proto__", NoteKind::Unknown, ""),
    ];
    assert_eq!(told, expected);
    assert_eq!((outcome.config.turn_limit, outcome.config.layers), (2, 3));
}

#[test]
fn what_is_not_json_gives_the_defaults_and_one_note() {
    let deep = "[".repeat(100_000);
    for text in ["", "{", "[]", "null", "{\"gamma\": 0.5", "{\"gamma\": NaN}", "\u{0}", &deep] {
        let outcome = from_json(text, REGISTRY);
        assert_eq!(outcome.config, ExperimentConfig::defaults("maze", REGISTRY));
        assert_eq!(
            outcome.notes.iter().map(|note| note.kind).collect::<Vec<_>>(),
            [NoteKind::Syntax],
            "{}",
            &text[..text.len().min(20)]
        );
    }
    assert_eq!(from_json("\u{feff}{\"gamma\": 0.5}", REGISTRY).config.gamma, 0.5);
    let parameters = from_json("{\"parameters\": 5, \"gamma\": 0.5}", REGISTRY);
    assert_eq!((parameters.config.gamma, parameters.notes[0].field.as_str(), parameters.notes.len()), (0.5, "parameters", 1));
}

#[test]
fn floods_are_bounded() {
    let flood: String = (0..50_000).map(|i| format!("x{i}=1&")).collect();
    let outcome = from_link(&flood, REGISTRY);
    assert_eq!(outcome.notes.len(), 101);
    assert!(outcome.notes[100].text_en.contains("49902 more"), "{}", outcome.notes[100].text_en);
}

#[test]
fn titles_are_cut_at_whole_characters() {
    let cases = [("a".repeat(81), "a".repeat(80)), ("漢".repeat(60), "漢".repeat(40)), ("🙂".repeat(31), "🙂".repeat(30))];
    for (given, kept) in cases {
        let mut config = ExperimentConfig::defaults("maze", REGISTRY);
        let note = set(&mut config, "title", &given, REGISTRY).unwrap();
        assert_eq!((note.field.as_str(), note.kind, &config.title), ("title", NoteKind::Clamped, &kept));
        assert_eq!(set(&mut config, "title", &kept, REGISTRY), None);
    }
}

#[test]
fn notes_repeat_no_control_characters() {
    let note = only_note("v=1&gamma=%1B%5B31m%E2%80%AE%0A1").unwrap();
    assert_eq!(note.given, "[31m1");
}

#[test]
fn the_command_line_keeps_what_it_cannot_replace() {
    let mut config = ExperimentConfig { gamma: 0.7, ..ExperimentConfig::defaults("maze", REGISTRY) };
    let mut told = |name: &str, value: &str| set(&mut config, name, value, REGISTRY).map(|note| (note.kind, note.used));
    assert_eq!(told("gamma", "much"), Some((NoteKind::Refused, "0.7".to_owned())));
    assert_eq!(told("environment", "castle"), Some((NoteKind::Refused, "maze".to_owned())));
    assert_eq!(told("gama", "1"), Some((NoteKind::Unknown, String::new())));
    assert_eq!(told("turn-limit", "99"), Some((NoteKind::Clamped, "8".to_owned())));
    assert_eq!(told("lamp", "on"), None);
    assert_eq!((config.gamma, config.turn_limit, config.parameters.switch("lamp")), (0.7, 8, true));
}

#[test]
fn settings_that_do_not_agree_are_brought_into_agreement() {
    let base = ExperimentConfig::defaults("maze", REGISTRY);
    let tight = ExperimentConfig { context_length: 16, turn_tokens: 12, ..base.clone() };
    let huge = ExperimentConfig { groups: 64, num_generations: 64, context_length: 128, micro_batches: 1, ..base.clone() };
    let large = ExperimentConfig { d_model: 128, layers: 4, imitation_batch: 512, ..huge.clone() };
    let few = ExperimentConfig { groups: 1, num_generations: 3, micro_batches: 16, ..base.clone() };
    let cases = [
        (base, vec![]),
        (tight, vec![("context_length", "20")]),
        (huge, vec![("groups", "16"), ("micro_batches", "2")]),
        (large, vec![("groups", "16"), ("micro_batches", "8"), ("imitation_batch", "128")]),
        (few, vec![("micro_batches", "3")]),
    ];
    for (config, expected) in cases {
        let outcome = check(&config, REGISTRY);
        let told: Vec<_> = outcome.notes.iter().map(|note| (note.field.as_str(), note.used.as_str())).collect();
        assert_eq!(told, expected);
        assert_usable(&outcome.config);
    }
}

/// An environment that asks for 10 tokens a turn and level.
static TOWER: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "tower",
    label: text("Tower", "高塔"),
    help: text("Climb.", "攀登。"),
    settings: &[own("level", Kind::Integer { default: 0, min: 0, max: 9 })],
    defaults: &[("context_length", DefaultValue::Integer(30))],
    question_types: &[text("any", "任意")],
    capabilities: &[],
    context: |config| ContextNeed { prompt: 20, episode: config.parameters.integer("level") * config.turn_limit * 10 },
};

#[test]
fn a_context_too_short_for_the_environment_is_raised_with_a_note_and_one_beyond_bounds_costs_turns() {
    let cases = [
        ("level=0&turns=8", vec![]),
        ("level=0&budget=12", vec![("context_length", "32")]),
        ("level=1&turns=3", vec![]),
        ("level=1&turns=8", vec![("context_length", "80")]),
        ("level=4&turns=8", vec![("turn_limit", "3"), ("context_length", "120")]),
        ("level=9&turns=1", vec![("context_length", "90")]),
        ("level=9&turns=2&ctx=128", vec![("turn_limit", "1")]),
    ];
    for (fields, expected) in cases {
        let mut outcome = from_link(&format!("v=1&env=tower&{fields}"), &[&TOWER]);
        outcome.notes.retain(|note| note.field != "c");
        let told: Vec<_> = outcome.notes.iter().map(|note| (note.field.as_str(), note.used.as_str())).collect();
        assert_eq!(told, expected, "{fields}");
        assert_eq!(check(&outcome.config, &[&TOWER]), ReadOutcome { notes: Vec::new(), ..outcome });
    }
    let note = from_link("v=1&env=tower&level=1&turns=8", &[&TOWER]).notes.pop().unwrap();
    let expected = "context_length: 30 holds no episode of the environment \"tower\" under these settings: at least 80; 80 is used \
                    instead.";
    assert_eq!(note.text_en, expected);
    assert_eq!(note.text_zh, "context_length：30 容不下环境“tower”在此设置下的一条轨迹，至少要 80，改用 80。");
}

#[test]
fn switches_are_read_as_one_and_zero_or_in_words_from_json_as_from_links() {
    for (given, expected) in [("1", true), ("true", true), ("0", false), ("false", false)] {
        let outcome = from_json(&format!("{{\"loss_mask\": {given}, \"parameters\": {{\"lamp\": {given}}}}}"), REGISTRY);
        assert_eq!((outcome.notes, outcome.config.loss_mask), (Vec::new(), expected), "{given}");
        assert_eq!(outcome.config.parameters.switch("lamp"), expected, "{given}");
        let link = format!("v=1&mask={given}&lamp={given}");
        assert_eq!((only_note(&link), from_link(&link, REGISTRY).config.loss_mask), (None, expected), "{given}");
    }
    for given in ["2", "-1", "\"yes\"", "null", "[1]"] {
        let outcome = from_json(&format!("{{\"loss_mask\": {given}}}"), REGISTRY);
        assert_eq!(outcome.notes.first().map(|note| note.kind), Some(NoteKind::Refused), "{given}");
    }
}

#[test]
fn numbers_longer_than_links_hold_them_are_rounded_with_a_note() {
    let note = only_note("v=1&gamma=0.123456789").unwrap();
    assert_eq!((note.kind, note.used.as_str()), (NoteKind::Clamped, "0.123457"));
    assert_eq!(note.text_en, "gamma: 0.123456789 is not a number from 0 to 1 with at most 6 digits; 0.123457 is used instead.");
    assert_eq!(only_note("v=1&gamma=0.12345600"), None);
    assert_eq!(only_note("v=1&seed=4294967295"), None, "whole numbers keep all their digits");
}

#[test]
fn a_configuration_from_elsewhere_is_checked() {
    let mut config = ExperimentConfig { gamma: f64::NAN, temperature: f64::INFINITY, heads: 5, ..ExperimentConfig::default() };
    config.environment = "market".to_owned();
    config.title = "a".repeat(100);
    config.parameters.insert("wind", Value::Choice("west".to_owned()));
    config.parameters.insert("moon", Value::Switch(true));
    let outcome = check(&config, REGISTRY);
    assert_usable(&outcome.config);
    let told: Vec<_> = outcome.notes.iter().map(|note| (note.field.as_str(), note.used.as_str())).collect();
    assert_eq!(told[1..], [("gamma", "0.5"), ("temperature", "5"), ("heads", "4"), ("wind", "1"), ("moon", "")][..]);
    assert_eq!(told[0].0, "title");
    config.environment = "castle".to_owned();
    assert_eq!(check(&config, REGISTRY).config.environment, "maze");
}
