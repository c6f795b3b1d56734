//! Data flows one way: what a module may import, and what only one module may name. Read from the source text.

use std::path::PathBuf;

/// The pipeline: a module imports only from modules to its left.
const PIPELINE: [&str; 12] = [
    "config",
    "environment",
    "lesson",
    "policy",
    "kernel",
    "cpu",
    "rollout",
    "reward",
    "credit",
    "objective",
    "learner",
    "metrics",
];

/// Shared basics: every module may import them, they import only each other.
const BASICS: [&str; 5] = ["seed", "vocabulary", "device", "parallel", "readback"];

/// The driver, the border to the browser and the command line may import everything.
const FREE: [&str; 3] = ["trainer", "web", "bin"];

/// Modules that build without the tensor library.
const PLAIN: [&str; 8] = ["config", "environment", "lesson", "reward", "credit", "metrics", "seed", "vocabulary"];

/// A source file: the module it belongs to, its path below `src`, its code without comments.
struct Source {
    module: String,
    path: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = crate::root().join("src");
    let mut folders = vec![root.clone()];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let source = |file: &PathBuf| {
        let path = file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let module = path.split('/').next().unwrap().trim_end_matches(".rs").to_string();
        Source { module, code: without_comments(&std::fs::read_to_string(file).unwrap()), path }
    };
    files.iter().map(source).collect()
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// The modules of the crate that `code` names: in `crate::name`, and in lists as `crate::{name, other::Item}`.
fn imported(code: &str) -> Vec<String> {
    let ident = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut names = Vec::new();
    for (start, _) in code.match_indices("crate::") {
        let rest = &code[start + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.push(ident(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for c in list.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => names.push(ident(std::mem::take(&mut item).trim())),
                _ => {}
            }
            if c != ',' || depth > 0 {
                item.push(c);
            }
        }
        names.push(ident(item.trim()));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Why `module` may not import `other`.
fn violation(module: &str, other: &str) -> Option<String> {
    if FREE.contains(&module) || module == other || BASICS.contains(&other) {
        return None;
    }
    if BASICS.contains(&module) {
        return Some(format!("the shared basic `{module}` imports `{other}`"));
    }
    let place = |name: &str| PIPELINE.iter().position(|stage| *stage == name);
    match (place(module), place(other)) {
        (Some(here), Some(there)) if there < here => None,
        (Some(_), Some(_)) => Some(format!("`{module}` imports `{other}`, which is to its right")),
        (None, _) => Some(format!("`{module}` has no place in the pipeline")),
        (_, None) => Some(format!("`{module}` imports `{other}`, which only the driver may")),
    }
}

#[test]
fn modules_import_only_from_their_left() {
    let mut wrong = Vec::new();
    let sources = sources();
    for source in sources.iter().filter(|source| source.module != "lib") {
        wrong.extend(
            imported(&source.code)
                .iter()
                .filter_map(|other| violation(&source.module, other))
                .map(|what| format!("src/{}: {what}", source.path)),
        );
        // In the root file of a module `super` is the crate itself.
        let root = source.path == format!("{}/mod.rs", source.module) || !source.path.contains('/');
        if root && source.code.lines().any(|line| line.starts_with("use super::")) {
            wrong.push(format!("src/{}: reaches the crate through `super`", source.path));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for module in PIPELINE.iter().chain(&BASICS).chain(&FREE) {
        assert!(sources.iter().any(|source| source.module == *module), "there is no module `{module}`");
    }
}

/// Files outside of `allowed` that name one of `words`.
fn named_outside(words: &[&str], allowed: impl Fn(&Source) -> bool) -> Vec<String> {
    let sources = sources();
    let found = sources.iter().filter(|source| !allowed(source)).flat_map(|source| {
        let named = words.iter().filter(|word| source.code.contains(**word));
        named.map(|word| format!("src/{} names `{word}`", source.path))
    });
    found.collect()
}

#[test]
fn tensors_are_read_back_in_one_file() {
    let reading = ["into_data", "to_data", "into_scalar", "try_into_vec"];
    assert_eq!(named_outside(&reading, |source| source.path == "readback.rs"), Vec::<String>::new());
    assert!(!named_outside(&reading, |_| false).is_empty(), "the file that reads is not found by these words");
}

#[test]
fn only_the_border_knows_the_browser() {
    let browser = ["wasm_bindgen", "js_sys", "web_sys", "console_error_panic_hook"];
    assert_eq!(named_outside(&browser, |source| source.module == "web"), Vec::<String>::new());
    assert!(!named_outside(&browser, |_| false).is_empty(), "the border is not found by these words");
}

#[test]
fn the_plain_half_names_no_tensor() {
    let tensors = ["burn::", "Tensor<"];
    assert_eq!(named_outside(&tensors, |source| !PLAIN.contains(&source.module.as_str())), Vec::<String>::new());
    assert!(!named_outside(&tensors, |source| source.module != "policy").is_empty());
}

#[test]
fn the_rules_can_be_broken() {
    assert_eq!(
        imported("use crate::config::A;\nuse crate::{seed, rollout::{B, C}, web::D};"),
        ["config", "seed", "rollout", "web"]
    );
    assert_eq!(imported(&without_comments("let x = crate::credit::assign(a); // crate::metrics")), ["credit"]);
    assert!(violation("reward", "rollout").is_none() && violation("rollout", "reward").is_some());
    assert!(violation("seed", "vocabulary").is_none() && violation("seed", "config").is_some());
    assert!(violation("learner", "trainer").is_some() && violation("trainer", "metrics").is_none());
    assert!(violation("novelty", "config").is_some());
}
