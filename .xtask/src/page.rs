//! The page: its packages, its build by Vite into `www/dist`, and what a first visit transfers.

use crate::project::{Outcome, Project, output_of, run, stage};
use crate::stamp::{self, Stamp};
use crate::wasm::{self, Module, STAMP_FILE};
use std::fs;
use std::process::Command;

/// What Vite and the page's tools need.
const OLDEST_NODE: (u32, u32) = (20, 19);
/// The most a first visit may transfer, in bytes after brotli.
pub const FIRST_VISIT_LIMIT: u64 = 2_000_000;
/// How the paths of files begin that a first visit does not fetch: policies, which come when a person presses Train, and the page
/// of measurements with a module of its own.
const LATER: [&str; 3] = ["warm-start/", "bench.html", "assets/tfjs-"];
/// The recorded runs, and the one among them that a first visit shows; the others come with their task.
const RECORDINGS: (&str, &str) = ("recorded/", "recorded/search.json");
/// The engines; a visitor fetches the one of the device that the browser has.
const ENGINES: [Module; 2] = [Module::Cpu, Module::Gpu];
const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// Builds the browser modules and the page where their sources have changed.
pub fn build(project: &Project) -> Outcome<()> {
    wasm::build(project, &Module::ALL)?;
    install_packages(project)?;
    bundle(project)
}

/// npm in the page's folder.
pub fn npm(project: &Project) -> Command {
    let mut npm = project.command(NPM);
    npm.current_dir(project.www());
    npm
}

/// Installs the packages of the lock file, unless they are there already.
pub fn install_packages(project: &Project) -> Outcome<()> {
    let node = output_of(project.command("node").arg("--version"));
    if node.as_deref().and_then(version).is_none_or(|found| found < OLDEST_NODE) {
        let found = node.map_or("it is not installed".to_string(), |text| format!("this is {text}"));
        return Err(format!("the page needs Node.js {}.{} or newer with npm ({found})", OLDEST_NODE.0, OLDEST_NODE.1));
    }
    let changed = |path: &str| fs::metadata(project.www().join(path)).and_then(|data| data.modified()).ok();
    let (wanted, installed) = (changed("package-lock.json"), changed("node_modules/.package-lock.json"));
    if wanted.is_none() {
        return Err("www/package-lock.json is missing".to_string());
    }
    if installed >= wanted {
        eprintln!("-- page packages: up to date");
        return Ok(());
    }
    stage("page packages: npm ci", || {
        run(npm(project).args(["ci", "--no-audit", "--no-fund"]).stdout(std::io::stderr()), "npm ci in www")
    })
}

fn bundle(project: &Project) -> Outcome<()> {
    let mut stamp = Stamp::new();
    let skip = |path: &str| ["www/node_modules", "www/dist", "www/src/wasm"].contains(&path);
    stamp.add_path(&project.root, "www", &skip)?;
    for module in Module::ALL {
        stamp.add_path(&project.root, &format!("www/src/wasm/{}/{STAMP_FILE}", module.name()), &|_| false)?;
    }
    let kept = project.www().join("node_modules/.turnwise-page");
    if project.dist().join("index.html").is_file() && stamp::is_current(&kept, &stamp.text()) {
        eprintln!("-- page: up to date");
        return Ok(());
    }
    stage("page: npm run build", || {
        run(npm(project).args(["run", "--silent", "build"]).stdout(std::io::stderr()), "npm run build in www")?;
        stamp::keep(&kept, &stamp.text())
    })
}

/// `v20.19.1` as (20, 19).
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim_start_matches('v').split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The size of one published file, in bytes.
#[derive(Debug, PartialEq)]
struct Size {
    path: String,
    raw: u64,
    gzip: u64,
    brotli: u64,
    when: When,
}

/// When a file is fetched.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// By every first visit.
    First,
    /// By a first visit that trains with this engine.
    With(Module),
    /// When it is used.
    Later,
}

/// The sizes of all published files.
#[derive(Debug, PartialEq)]
pub struct Sizes(Vec<Size>);

/// Compresses the built page as hosts do, and measures it.
pub fn sizes(project: &Project) -> Outcome<Sizes> {
    stage("page: compressing", || {
        let cache = project.target.join("compressed");
        let script = project.root.join(".xtask/compress.mjs");
        let text = output_of(project.command("node").arg(script).arg(project.dist()).arg(cache))
            .ok_or("compressing www/dist failed; build the page first with `cargo xtask build`")?;
        let index = project.dist().join("index.html");
        let html = std::fs::read_to_string(&index).map_err(|error| format!("cannot read {}: {error}", index.display()))?;
        Sizes::parse(&text, &html)
    })
}

impl Sizes {
    /// `html` is the page itself: it names the scripts and styles that it starts with, what they import included.
    fn parse(text: &str, html: &str) -> Outcome<Self> {
        let line = |line: &str| {
            let mut parts = line.split('\t');
            let path = parts.next()?.to_string();
            let mut number = || parts.next()?.parse().ok();
            let name = path.rsplit('/').next().unwrap_or_default();
            let code = name.ends_with(".js") || name.ends_with(".css");
            let later = LATER.iter().any(|begin| path.starts_with(begin))
                || (path.starts_with(RECORDINGS.0) && path != RECORDINGS.1)
                || (code && !name.starts_with("worker") && !html.contains(name));
            let engine = ENGINES.into_iter().find(|engine| name.starts_with(&format!("turnwise_{}", engine.name())));
            let when = match engine {
                Some(engine) => When::With(engine),
                None if later => When::Later,
                None => When::First,
            };
            Some(Size { raw: number()?, gzip: number()?, brotli: number()?, when, path })
        };
        text.lines().map(|text| line(text).ok_or(format!("`{text}` is no line of sizes"))).collect::<Outcome<Vec<_>>>().map(Self)
    }

    /// Bytes of a first visit that trains with an engine, after brotli: every file but those fetched later and the other engine.
    fn first_visit(&self, engine: Module) -> u64 {
        let fetched = |size: &&Size| size.when == When::First || size.when == When::With(engine);
        self.0.iter().filter(fetched).map(|size| size.brotli).sum()
    }

    /// Bytes of the larger of the first visits.
    pub fn largest_first_visit(&self) -> u64 {
        ENGINES.into_iter().map(|engine| self.first_visit(engine)).max().unwrap_or_default()
    }

    /// Prints the table.
    pub fn print(&self) {
        println!("{:<58} {:>11} {:>11} {:>11}", "file (bytes)", "raw", "gzip -9", "brotli -q11");
        for size in &self.0 {
            let note = match size.when {
                When::First => String::new(),
                When::With(engine) => format!("  (trains on the {})", engine.name().to_uppercase()),
                When::Later => "  (when used)".to_string(),
            };
            println!("{:<58} {:>11} {:>11} {:>11}{note}", size.path, size.raw, size.gzip, size.brotli);
        }
        let limit = FIRST_VISIT_LIMIT as f64 / 1e6;
        for engine in ENGINES {
            let (total, name) = (self.first_visit(engine) as f64 / 1e6, engine.name().to_uppercase());
            println!("a first visit that trains on the {name} transfers {total:.3} MB with brotli (limit {limit:.1} MB)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_read() {
        assert_eq!(version("v20.20.2"), Some((20, 20)));
        assert!(version("v18.20.0").unwrap() < OLDEST_NODE && version("v22.1.0").unwrap() > OLDEST_NODE);
        assert_eq!(version("none"), None);
    }

    #[test]
    fn a_first_visit_leaves_out_what_comes_later() {
        let sizes = "index.html\t100\t60\t50\nassets/a.wasm\t1000\t400\t300\nwarm-start/search.safetensors\t9\t8\t7\nrecorded/web.json\t9\t8\t7\nrecorded/search.json\t9\t8\t4\n\
             assets/index-1.js\t5\t4\t3\nassets/menu-2.js\t50\t40\t30\nassets/worker-3.js\t9\t9\t2\n\
             bench.html\t9\t8\t7\nassets/bench-4.js\t9\t8\t7\nassets/tfjs-5.wasm\t9\t8\t7";
        let sizes = Sizes::parse(sizes, r#"<script type="module" src="./assets/index-1.js"></script>"#).unwrap();
        assert_eq!(sizes.largest_first_visit(), 359);
        let engines = "index.html\t9\t8\t7\nassets/turnwise_cpu-a.js\t9\t8\t1\nassets/turnwise_cpu_bg-b.wasm\t9\t8\t20\n\
             assets/turnwise_gpu-c.js\t9\t8\t2\nassets/turnwise_gpu_bg-d.wasm\t9\t8\t300\nassets/turnwise_page_bg-e.wasm\t9\t8\t4000";
        let sizes = Sizes::parse(engines, "").unwrap();
        assert_eq!((sizes.first_visit(Module::Cpu), sizes.first_visit(Module::Gpu)), (4028, 4309));
        assert_eq!(sizes.largest_first_visit(), 4309);
        assert!(Sizes::parse("index.html\tmany", "").unwrap_err().contains("index.html"));
    }
}
