//! The modules the browser loads, all from the one crate:
//!
//! - `page`: settings, links and credit, without the tensor library; small, runs on the page's main thread;
//! - `cpu` and `gpu`: the engine that trains, in a worker, on the CPU or on WebGPU; a visitor needs one of them.
//!
//! Each is compiled with the profile `web` and given its JavaScript bindings. A finished module is kept in the build folder
//! under the hash of all that went into it, so that another checkout of the same sources takes it from there.

use crate::project::{Outcome, Project, run, seconds, stage};
use crate::stamp::{self, Stamp};
use crate::toolchain::{self, Compiler, TARGET};
use crate::unused;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wasm_bindgen_cli_support::Bindgen;

/// One of the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Module {
    Page,
    Cpu,
    Gpu,
}

impl Module {
    pub const ALL: [Self; 3] = [Self::Page, Self::Cpu, Self::Gpu];

    /// The modules named on the command line; all when none is named.
    pub fn parse(names: &[String]) -> Outcome<Vec<Self>> {
        if names.is_empty() {
            return Ok(Self::ALL.to_vec());
        }
        let by_name = |name: &String| {
            Self::ALL.into_iter().find(|module| module.name() == name).ok_or(format!("no module `{name}`: page, cpu or gpu"))
        };
        names.iter().map(by_name).collect()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        }
    }

    fn features(self) -> &'static [&'static str] {
        match self {
            Self::Page => &[],
            Self::Cpu => &["--features", "cpu"],
            Self::Gpu => &["--features", "gpu"],
        }
    }

    /// In place of the profile's level: on a graphics device time is spent there, and four fifths of a visitor's bytes are this module.
    fn opt_level(self) -> Option<&'static str> {
        (self == Self::Gpu).then_some("z")
    }

    /// Where the page's source expects the module.
    fn folder(self, project: &Project) -> PathBuf {
        project.www().join("src/wasm").join(self.name())
    }
}

/// The file beside the generated ones that says what they were made from.
pub const STAMP_FILE: &str = "stamp.txt";

/// Builds the modules whose sources have changed.
pub fn build(project: &Project, modules: &[Module]) -> Outcome<()> {
    // Looking for a compiler takes longer than seeing that nothing has changed.
    let last_compiler = project.wasm_target.join("last-compiler");
    let sources = sources(project)?;
    let known = fs::read_to_string(&last_compiler).unwrap_or_default();
    let fresh = |module: &Module, compiler: &str| {
        stamp::is_current(&module.folder(project).join(STAMP_FILE), &stamp_of(*module, &sources, compiler))
    };
    if modules.iter().all(|module| fresh(module, known.trim())) {
        eprintln!("-- browser modules: up to date ({})", known.trim());
        return Ok(());
    }
    let compiler = stage("compiler for the browser", || toolchain::find(project))?;
    eprintln!("   {} ({})", compiler.version, compiler.name);
    fs::create_dir_all(&project.wasm_target).map_err(|error| format!("{}: {error}", project.wasm_target.display()))?;
    stamp::keep(&last_compiler, &compiler.version)?;
    for module in modules {
        if fresh(module, &compiler.version) {
            eprintln!("-- browser module `{}`: up to date", module.name());
        } else {
            build_one(project, *module, &compiler, &stamp_of(*module, &sources, &compiler.version))?;
        }
    }
    Ok(())
}

fn build_one(project: &Project, module: Module, compiler: &Compiler, stamp: &str) -> Outcome<()> {
    let start = Instant::now();
    let (name, folder) = (module.name(), module.folder(project));
    let build_folder = project.wasm_target.join(&compiler.name).join(name);
    let finished = build_folder.join("finished");
    if stamp::is_current(&finished.join(STAMP_FILE), stamp) {
        eprintln!("-- browser module `{name}`: taken from {}", finished.display());
        return replace(&finished, &folder);
    }
    let hint = if module == Module::Gpu { ", a quarter of an hour the first time" } else { "" };
    stage(&format!("browser module `{name}`: compiling (profile web{hint})"), || {
        let mut cargo = compiler.cargo(project, "rustc", &build_folder);
        // The crate type is named because link-time optimisation is left out when an rlib is built along with it.
        cargo.args(["--package", "turnwise", "--lib", "--crate-type", "cdylib", "--profile", "web", "--no-default-features"]);
        cargo.envs(module.opt_level().map(|level| ("CARGO_PROFILE_WEB_OPT_LEVEL", level)));
        cargo.args(module.features()).args(["--", "-C", EXPORT_CONSTRUCTORS]);
        run(cargo.stdout(std::io::stderr()), &format!("compiling the browser module `{name}`"))
    })?;
    stage(&format!("browser module `{name}`: bindings"), || {
        let new = build_folder.join("bindings");
        bindings(&build_folder.join(TARGET).join("web/turnwise.wasm"), &new, &format!("turnwise_{name}"))?;
        replace(&new, &finished)?;
        stamp::keep(&finished.join(STAMP_FILE), stamp)?;
        replace(&finished, &folder)
    })?;
    let size = fs::metadata(folder.join(format!("turnwise_{name}_bg.wasm"))).map_or(0, |data| data.len());
    eprintln!("   {:.2} MB, {} in all", size as f64 / 1e6, seconds(start));
    Ok(())
}

/// Static constructors (the tensor library registers its kernels' operations by them) run once, at the start of the module.
/// Left to itself the linker calls all of them at the top of every exported function: a training step then takes half a minute.
/// Exporting them by name tells it that they are taken care of.
const CONSTRUCTORS: &str = "__wasm_call_ctors";
const EXPORT_CONSTRUCTORS: &str = "link-arg=--export=__wasm_call_ctors";

/// Writes the JavaScript, the TypeScript declarations and the module itself.
fn bindings(input: &Path, folder: &Path, name: &str) -> Outcome<()> {
    clear(folder)?;
    let failed = |error| format!("the bindings of {} failed: {error:#}", input.display());
    let mut generator = Bindgen::new();
    generator.input_path(input).out_name(name).typescript(true).remove_name_section(true).remove_producers_section(true);
    generator.web(true).map_err(failed)?;
    let mut output = generator.generate_output().map_err(failed)?;
    let wasm = output.wasm_mut();
    let constructors = wasm.exports.get_func(CONSTRUCTORS).map_err(failed)?;
    if wasm.start.replace(constructors).is_some() {
        return Err(format!("{} has a start function already; it would hide the static constructors", input.display()));
    }
    let replaced = unused::remove(wasm);
    if replaced > 0 {
        eprintln!("   {replaced} functions that are never called taken out");
    }
    output.emit(folder).map_err(failed)
}

fn clear(folder: &Path) -> Outcome<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|error| format!("{} cannot be removed: {error}", folder.display()))?;
    }
    fs::create_dir_all(folder).map_err(|error| format!("{} cannot be made: {error}", folder.display()))
}

/// Makes `to` a copy of `from`, its stamp last.
fn replace(from: &Path, to: &Path) -> Outcome<()> {
    clear(to)?;
    copy(from, to).map_err(|error| format!("{} cannot be copied to {}: {error}", from.display(), to.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(|entry| entry.file_name() == STAMP_FILE);
    for entry in entries {
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The hash of all sources of the modules: the crate without its command line, the lock file, the profile, the flags.
fn sources(project: &Project) -> Outcome<String> {
    let mut stamp = Stamp::new();
    let skip = |path: &str| path == "src/bin";
    for path in ["src", "Cargo.toml", "Cargo.lock", ".cargo/config.toml", ".xtask/src/wasm.rs", ".xtask/src/unused.rs"] {
        stamp.add_path(&project.root, path, &skip)?;
    }
    Ok(stamp.text())
}

fn stamp_of(module: Module, sources: &str, compiler: &str) -> String {
    Stamp::new().add(module.name().as_bytes()).add(sources.as_bytes()).add(compiler.as_bytes()).text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_named_on_the_command_line() {
        assert_eq!(Module::parse(&[]), Ok(Module::ALL.to_vec()));
        assert_eq!(Module::parse(&["gpu".to_string()]), Ok(vec![Module::Gpu]));
        assert!(Module::parse(&["motor".to_string()]).unwrap_err().contains("motor"));
    }

    #[test]
    fn a_module_is_stale_when_source_or_compiler_change() {
        let stamps = [
            stamp_of(Module::Page, "1", "rustc 1"),
            stamp_of(Module::Gpu, "1", "rustc 1"),
            stamp_of(Module::Page, "2", "rustc 1"),
            stamp_of(Module::Page, "1", "rustc 2"),
        ];
        for (i, a) in stamps.iter().enumerate() {
            assert!(stamps[i + 1..].iter().all(|b| a != b));
        }
    }

    #[test]
    fn replacing_leaves_nothing_of_the_old_folder() {
        let base = std::env::temp_dir().join(format!("turnwise-replace-{}", std::process::id()));
        let (from, to) = (base.join("from"), base.join("to"));
        fs::create_dir_all(from.join("snippets")).unwrap();
        fs::create_dir_all(&to).unwrap();
        fs::write(from.join("snippets/a.js"), "new").unwrap();
        fs::write(to.join("old.js"), "old").unwrap();
        replace(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(to.join("snippets/a.js")).unwrap(), "new");
        assert!(!to.join("old.js").exists());
        fs::remove_dir_all(&base).unwrap();
    }
}
