//! What is written is read back, exactly and without notes.

use proptest::prelude::*;

use super::*;

/// A value of a setting's kind out of 64 random bits: bounds, defaults, round numbers and arbitrary doubles all come up.
fn value_from(setting: &Setting, bits: u64) -> Value {
    let pick = |count: usize| (bits >> 8) as usize % count;
    match setting.kind {
        Kind::Number { default, min, max, step, .. } => Value::Number(match bits % 8 {
            0 => min,
            1 => max,
            2 => default,
            3 => (min + step * pick(40) as f64).min(max),
            4 => f64::from_bits(bits).abs().clamp(min, max) + 0.0,
            _ => min + (max - min) * (bits >> 11) as f64 / (1_u64 << 53) as f64,
        }),
        Kind::Integer { default, min, max } => Value::Number(
            match bits % 4 {
                0 => f64::from(default),
                _ => f64::from(min) + (bits >> 8) as f64 % (f64::from(max) - f64::from(min) + 1.0).floor(),
            }
            .floor(),
        ),
        Kind::IntegerChoice { options, .. } => Value::Number(f64::from(options[pick(options.len())])),
        Kind::Switch { .. } => Value::Switch(bits & 256 == 0),
        Kind::Choice { options, .. } => Value::Choice(options[pick(options.len())].value.to_owned()),
    }
}

/// Any configuration that has been checked.
fn any_config() -> impl Strategy<Value = ExperimentConfig> {
    let bits = proptest::collection::vec(any::<u64>(), SETTINGS.len() + MAZE.settings.len());
    let title = prop_oneof!["[ -~]{0,90}", "\\PC{0,90}", Just("漢字 🙂 \u{5d0} %41&c=#\n".to_owned())];
    (any::<bool>(), bits, title).prop_map(|(maze, bits, title)| {
        let mut config = ExperimentConfig::defaults(if maze { "maze" } else { "market" }, REGISTRY);
        config.title = title;
        for (setting, bits) in all_settings(&config).into_iter().zip(bits) {
            config.assign(setting.name, &value_from(setting, bits));
        }
        check(&config, REGISTRY).config
    })
}

proptest! {
    #[test]
    fn a_link_gives_the_configuration_back(config in any_config()) {
        let link = to_link(&config, REGISTRY);
        let outcome = from_link(&link, REGISTRY);
        prop_assert_eq!(&outcome.notes, &[]);
        prop_assert_eq!(&outcome.config, &config);
        prop_assert_eq!(to_link(&outcome.config, REGISTRY), link.clone());
        prop_assert!(link.len() <= LINK_LIMIT, "{} characters", link.len());
        prop_assert!(link.bytes().all(|byte| byte.is_ascii_graphic()), "{}", link);
    }

    #[test]
    fn json_gives_the_configuration_back(config in any_config()) {
        let outcome = from_json(&to_json(&config), REGISTRY);
        prop_assert_eq!(&outcome.notes, &[]);
        prop_assert_eq!(&outcome.config, &config);
    }

    #[test]
    fn setting_by_setting_gives_the_configuration_back(config in any_config()) {
        let mut copy = ExperimentConfig::defaults("maze", REGISTRY);
        prop_assert_eq!(set(&mut copy, "environment", &config.environment, REGISTRY), None);
        prop_assert_eq!(set(&mut copy, "title", &config.title, REGISTRY), None);
        for setting in all_settings(&config) {
            let value = config.value(setting.name).unwrap().to_string();
            prop_assert_eq!(set(&mut copy, &setting.name.replace('_', "-"), &value, REGISTRY), None);
        }
        prop_assert_eq!(copy, config);
    }

    #[test]
    fn what_was_checked_stays(config in any_config()) {
        assert_usable(&config);
    }
}

#[test]
fn a_default_link_is_short_and_readable() {
    let mut config = ExperimentConfig::defaults("maze", REGISTRY);
    let link = to_link(&config, REGISTRY);
    assert!(link.starts_with("v=1&env=maze&seed=0&c="), "{link}");
    (config.seed, config.gamma, config.loss_mask, config.credit_method) = (7, 1.0, false, CreditMethod::ReturnToGo);
    config.learning_rate = 3e-6;
    config.title = "γ = 1?".to_owned();
    config.parameters.insert("rooms", Value::Number(4.0));
    let link = to_link(&config, REGISTRY);
    let expected = "v=1&env=maze&seed=7&gamma=1&credit=return_to_go&mask=0&lr=3e-6&rooms=4&title=%CE%B3%20%3D%201%3F&c=";
    assert!(link.starts_with(expected), "{link}");
}

#[test]
fn a_link_opens_in_every_dress() {
    let config = ExperimentConfig { gamma: 0.3, title: "漢 字".to_owned(), ..ExperimentConfig::defaults("market", REGISTRY) };
    let link = to_link(&config, REGISTRY);
    let expected = ReadOutcome { config, notes: Vec::new() };
    let decoded = link.replace("%E6%BC%A2%20%E5%AD%97", "漢 字");
    assert_ne!(decoded, link);
    let dresses = [
        format!("#{link}"),
        format!("https://example.org/a/b/?x=1#{link}"),
        format!("localhost:8000/#{link}"),
        format!("  {link}\n"),
        link.replace("%E6", "%e6"),
        decoded,
    ];
    for dress in dresses {
        assert_eq!(from_link(&dress, REGISTRY), expected, "{dress}");
    }
}

#[test]
fn an_address_without_a_fragment_gives_the_defaults() {
    let expected = ReadOutcome { config: ExperimentConfig::defaults("maze", REGISTRY), notes: Vec::new() };
    for link in ["", "#", "https://example.org/?gamma=1", "https://example.org/#", " "] {
        assert_eq!(from_link(link, REGISTRY), expected, "{link:?}");
    }
}

#[test]
fn the_longest_link_keeps_the_limit() {
    audit(REGISTRY);
    let length = to_link(&longest(&MAZE, REGISTRY), REGISTRY).len();
    assert!(length > 1000, "only {length} characters: not the longest");
}

#[test]
fn numbers_are_written_short() {
    let cases = [(1.0, "1"), (0.0, "0"), (-0.5, "-0.5"), (1e-6, "1e-6"), (0.001, "0.001"), (4_294_967_295.0, "4294967295")];
    for (number, text) in cases {
        assert_eq!(number_text(number), text);
    }
}
