//! Tests of the settings, under two small environments of their own.

mod bad_input;
mod links;
mod round_trip;

use super::read::settings_in;
use super::*;

static WORDS: &[ChoiceOption] = &[
    ChoiceOption { value: "short", label: text("Short", "短") },
    ChoiceOption { value: "very_long", label: text("Very long", "很长") },
];

const fn own(name: &'static str, kind: Kind) -> Setting {
    let (label, help) = (text("Own", "自有"), text("A parameter.", "一个参数。"));
    Setting { name, section: Section::Environment, kind, label, unit: text("", ""), help, advanced: false }
}

static MAZE: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "maze",
    label: text("Maze", "迷宫"),
    help: text("Find the way out.", "找到出口。"),
    settings: &[
        own("wind", Kind::Number { default: 0.25, min: -1.0, max: 1.0, step: 0.1, scale: Scale::Linear }),
        own("rooms", Kind::Integer { default: 6, min: 2, max: 9 }),
        own("width", Kind::IntegerChoice { default: 3, options: &[3, 5, 9] }),
        own("lamp", Kind::Switch { default: false }),
        own("story", Kind::Choice { default: "short", options: WORDS }),
    ],
    defaults: &[],
    question_types: &[text("near", "近")],
    capabilities: &[],
    context: |_| ContextNeed { prompt: 5, episode: 0 },
};

static MARKET: EnvironmentDeclaration = EnvironmentDeclaration {
    name: "market",
    label: text("Market", "集市"),
    help: text("Buy and sell.", "买卖。"),
    settings: &[own("wind", Kind::Integer { default: 1, min: 0, max: 4 })],
    defaults: &[
        ("gamma", DefaultValue::Number(0.5)),
        ("turn_limit", DefaultValue::Integer(3)),
        ("loss_mask", DefaultValue::Switch(false)),
        ("credit_method", DefaultValue::Choice("return_to_go")),
        ("d_model", DefaultValue::Integer(32)),
    ],
    question_types: &[text("any", "任意")],
    capabilities: &[],
    context: |_| ContextNeed { prompt: 5, episode: 0 },
};

pub(crate) static REGISTRY: &Registry = &[&MAZE, &MARKET];

fn all_settings(config: &ExperimentConfig) -> Vec<&'static Setting> {
    settings_in(REGISTRY.iter().copied().find(|environment| environment.name == config.environment)).collect()
}

/// Panics unless every value is there and within its bounds, and the values agree with each other.
fn assert_usable(config: &ExperimentConfig) {
    for setting in all_settings(config) {
        let value = config.value(setting.name);
        assert!(value.as_ref().is_some_and(|value| setting.accepts(value)), "{}: {value:?}", setting.name);
    }
    let outcome = check(config, REGISTRY);
    assert_eq!(outcome.notes, []);
    assert_eq!(outcome.config, *config);
}

/// The configuration with the longest link: every setting off its default, with as many digits as a number may have.
fn longest(environment: &EnvironmentDeclaration, registry: &Registry) -> ExperimentConfig {
    let longest_numbers = [-0.000_123_456, 0.000_123_456, -1.234_56e-9, 1.234_56e-9];
    let mut config = ExperimentConfig::defaults(environment.name, registry);
    config.title = "漢".repeat(TITLE_BYTES / 3);
    for setting in SETTINGS.iter().chain(environment.settings) {
        let default = config.value(setting.name).unwrap();
        let mut candidates: Vec<Value> = match setting.kind {
            Kind::Number { min, max, .. } => {
                longest_numbers.into_iter().chain([super::value::rounded(min + (max - min) / 7.0)]).map(Value::Number).collect()
            }
            Kind::Integer { min, max, .. } => [max, min].map(|x| Value::Number(f64::from(x))).to_vec(),
            Kind::IntegerChoice { options, .. } => options.iter().map(|&x| Value::Number(f64::from(x))).collect(),
            Kind::Switch { default } => vec![Value::Switch(!default), Value::Switch(default)],
            Kind::Choice { options, .. } => options.iter().map(|option| Value::Choice(option.value.to_owned())).collect(),
        };
        candidates.retain(|value| setting.accepts(value) && *value != default);
        config.assign(setting.name, &candidates.into_iter().max_by_key(|value| value.to_string().len()).unwrap());
    }
    config
}

/// What every environment's declaration must keep; panics with the reason. For the tests of the registered environments.
pub(crate) fn audit(registry: &Registry) {
    for environment in registry {
        let EnvironmentDeclaration { name, settings, defaults, .. } = environment;
        for setting in *settings {
            let common = SETTINGS.iter().map(|common| common.name).chain(super::experiment::LINK_KEYS.iter().copied());
            let mut taken = common.chain(RESERVED).chain(settings.iter().map(|setting| setting.name));
            assert_eq!(taken.by_ref().filter(|taken| *taken == setting.name).count(), 1, "{name}: {} is taken", setting.name);
            assert!(setting.accepts(&setting.default_value()), "{name}: default of {} out of bounds", setting.name);
        }
        for (replaced, value) in *defaults {
            let setting = SETTINGS.iter().find(|setting| setting.name == *replaced);
            let setting = setting.unwrap_or_else(|| panic!("{name}: no common setting {replaced}"));
            assert!(setting.accepts(&Value::from(*value)), "{name}: {replaced} out of bounds");
        }
        let config = ExperimentConfig::defaults(name, registry);
        assert_eq!(check(&config, registry), ReadOutcome { config, notes: Vec::new() }, "{name}: defaults");
        let link = to_link(&longest(environment, registry), registry);
        assert!(link.len() <= LINK_LIMIT, "{name}: a link can have {} characters", link.len());
    }
}

/// Field names that are no settings.
const RESERVED: [&str; 10] = ["v", "c", "env", "environment", "title", "parameters", "version", "recipe", "seeds", "repro"];

#[test]
fn the_table_is_sound() {
    let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).chain(RESERVED).collect();
    for (setting, key) in SETTINGS.iter().zip(super::experiment::LINK_KEYS) {
        if setting.name != *key {
            names.push(key);
        }
    }
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "a name or key is used twice");
    for setting in SETTINGS {
        let Setting { name, kind, label, unit, help, .. } = setting;
        assert!(setting.accepts(&setting.default_value()), "{name}: default out of bounds");
        assert!(!label.en.is_empty() && !label.zh.is_empty(), "{name}: label");
        assert_eq!(unit.en.is_empty(), unit.zh.is_empty(), "{name}: unit");
        assert!(help.en.ends_with('.') && !help.en.trim_end_matches('.').contains(". "), "{name}: one English sentence");
        assert!(help.zh.ends_with('。') && help.zh.matches('。').count() == 1, "{name}: one Chinese sentence");
        assert!(!help.zh.contains(", ") && !help.zh.contains("; "), "{name}: Chinese punctuation");
        if let Kind::Number { min, max, step, scale, .. } = kind {
            assert!(min < max && *step > 0.0 && (*scale == Scale::Linear || *min > 0.0), "{name}: bounds");
        }
    }
}

#[test]
fn words_of_choices_are_those_of_serde() {
    let config = serde_json::to_value(ExperimentConfig::default()).unwrap();
    for setting in SETTINGS {
        let Kind::Choice { options, .. } = setting.kind else { continue };
        for option in options {
            let mut changed = config.clone();
            changed[setting.name] = option.value.into();
            let read: ExperimentConfig = serde_json::from_value(changed).unwrap();
            assert_eq!(read.value(setting.name), Some(Value::Choice(option.value.to_owned())));
        }
    }
}

#[test]
fn every_number_of_heads_divides_every_width() {
    let options = |name: &str| match SETTINGS.iter().find(|setting| setting.name == name).unwrap().kind {
        Kind::IntegerChoice { options, .. } => options,
        other => panic!("{other:?}"),
    };
    for width in options("d_model") {
        options("heads").iter().for_each(|heads| assert_eq!(width % heads, 0));
    }
}

#[test]
fn environments_replace_defaults() {
    let (maze, market) = (ExperimentConfig::defaults("maze", REGISTRY), ExperimentConfig::defaults("market", REGISTRY));
    assert_eq!((maze.gamma, maze.turn_limit, maze.loss_mask, maze.d_model), (0.95, 5, true, 64));
    assert_eq!((market.gamma, market.turn_limit, market.loss_mask, market.d_model), (0.5, 3, false, 32));
    assert_eq!((maze.credit_method, market.credit_method), (CreditMethod::Grpo, CreditMethod::ReturnToGo));
    assert_eq!((maze.parameters.number("wind"), maze.parameters.integer("rooms")), (0.25, 6));
    assert_eq!((maze.parameters.switch("lamp"), maze.parameters.choice("story")), (false, "short"));
    assert_eq!((maze.parameters.number("none"), maze.parameters.choice("rooms")), (0.0, ""));
    assert_eq!(ExperimentConfig::defaults("elsewhere", REGISTRY), maze);
    assert_usable(&maze);
    assert_usable(&market);
}

#[test]
fn moving_to_another_environment_keeps_what_was_chosen() {
    let mut config = ExperimentConfig { title: "mine".to_owned(), ..ExperimentConfig::defaults("maze", REGISTRY) };
    (config.learning_rate, config.turn_limit) = (0.01, 7);
    config.parameters.insert("rooms", Value::Number(9.0));
    let moved = with_environment(&config, "market", REGISTRY);
    assert_eq!((moved.environment.as_str(), moved.title.as_str()), ("market", "mine"));
    assert_eq!((moved.learning_rate, moved.turn_limit, moved.gamma), (0.01, 7, 0.5));
    assert_eq!(moved.parameters, ExperimentConfig::defaults("market", REGISTRY).parameters);
    assert_eq!(with_environment(&moved, "maze", REGISTRY).gamma, 0.95);
    assert_eq!(with_environment(&config, "maze", REGISTRY), config);
    assert_eq!(with_environment(&config, "elsewhere", REGISTRY), config);
}

#[test]
fn differences_name_the_setting_and_both_values() {
    let a = ExperimentConfig::defaults("maze", REGISTRY);
    let mut b = ExperimentConfig { gamma: 1.0, title: "other".to_owned(), ..a.clone() };
    b.parameters.insert("lamp", Value::Switch(true));
    let told = |found: Vec<Difference>| found.into_iter().map(|d| (d.name, d.a, d.b)).collect::<Vec<_>>();
    let expected = [("gamma", "0.95", "1"), ("lamp", "0", "1")].map(|(name, a, b)| (name, a.to_owned(), b.to_owned()));
    assert_eq!(told(differences(&a, &b, REGISTRY)), expected);
    assert_eq!(differences(&b, &b, REGISTRY), []);
    let market = differences(&a, &ExperimentConfig::defaults("market", REGISTRY), REGISTRY);
    assert_eq!(told(market.clone())[0], ("environment", "maze".to_owned(), "market".to_owned()));
    let wind: Vec<_> = market.iter().filter(|d| d.name == "wind").collect();
    assert_eq!((wind.len(), wind[0].a.as_str(), wind[0].b.as_str()), (1, "0.25", "1"));
    assert!(told(market).contains(&("rooms", "6".to_owned(), String::new())));
}

#[test]
fn the_description_and_the_manual_have_every_setting() {
    let description = serde_json::to_value(describe(REGISTRY)).unwrap();
    assert_eq!(description["settings"].as_array().unwrap().len(), SETTINGS.len());
    assert_eq!(description["environments"][0]["settings"][4]["kind"]["options"][1]["label"]["zh"], "很长");
    assert_eq!(description["defaults"]["market"]["gamma"], 0.5);
    let sections: Vec<_> = description["sections"].as_array().unwrap().iter().map(|s| s["section"].clone()).collect();
    let manual = markdown(REGISTRY);
    for setting in SETTINGS.iter().chain(MAZE.settings) {
        assert!(sections.contains(&serde_json::to_value(setting.section).unwrap()), "{}", setting.name);
        assert!(manual.contains(&format!("| `{}` |", setting.name)), "{}", setting.name);
    }
    assert!(manual.contains("| `gamma` | `gamma` | 0.95 (market: 0.5) | 0 to 1 | per turn |"), "{manual}");
}

#[test]
fn types_for_the_page_name_every_field() {
    let declaration = <ExperimentConfig as ts_rs::TS>::decl(&ts_rs::Config::default());
    for setting in SETTINGS {
        assert!(declaration.contains(&format!("{}: ", setting.name)), "{declaration}");
    }
    assert!(declaration.contains("gamma: number") && declaration.contains("loss_mask: boolean"), "{declaration}");
    assert!(declaration.contains("groups: number") && declaration.contains("seed: number"), "{declaration}");
    let value = <Value as ts_rs::TS>::decl(&ts_rs::Config::default());
    assert!(value.contains("boolean | number | string"), "{value}");
}
