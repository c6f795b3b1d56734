//! Finds a compiler that can build for the browser (`wasm32-unknown-unknown`), in this order:
//!
//! 1. the active toolchain has the target's standard library;
//! 2. rustup can add it;
//! 3. the system's own Rust has the standard library's source (Debian: `rustc-web` and its companions, installed when root),
//!    from which cargo builds the library together with the crate;
//! 4. otherwise one sentence says what to install.
//!
//! Compilers are never mixed: each has its own build folder, named after it, and is named by its full path where it is not
//! the active toolchain.

use crate::packages;
use crate::project::{Outcome, Project, clean_command, find_program, output_of};
use crate::stamp::{self, Stamp};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const TARGET: &str = "wasm32-unknown-unknown";
/// What the crate needs at least; the root manifest's `rust-version` says the same.
const OLDEST: (u32, u32) = (1, 95);
const SYSTEM_RUSTC: &str = "/usr/bin/rustc";
const SYSTEM_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

/// A compiler for the browser and how to call it.
pub struct Compiler {
    /// Names the build folder, as in `rustup-1.95.0`.
    pub name: String,
    /// The first line of `rustc -Vv`.
    pub version: String,
    system: Option<System>,
}

/// The system's Rust, which builds the standard library from source.
struct System {
    linker: String,
}

impl Compiler {
    /// cargo with this compiler, for the browser, in the given build folder.
    pub fn cargo(&self, project: &Project, subcommand: &str, build_folder: &Path) -> Command {
        let mut cargo = match &self.system {
            None => clean_command("cargo"),
            Some(system) => {
                let mut cargo = clean_command(SYSTEM_CARGO);
                cargo
                    .env("RUSTC", SYSTEM_RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &system.linker);
                cargo
            }
        };
        // The flags for the browser stand in .cargo/config.toml; these variables would hide them.
        cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_BUILD_RUSTFLAGS");
        cargo.current_dir(&project.root).arg(subcommand).args(["--target", TARGET]).arg("--target-dir").arg(build_folder);
        if self.system.is_some() {
            cargo.arg("-Zbuild-std=std,panic_abort");
        }
        cargo
    }
}

/// Finds the compiler, installing what may be installed.
pub fn find(project: &Project) -> Outcome<Compiler> {
    let active = Version::of(&mut clean_command("rustc"));
    if let Some(version) = &active {
        if target_is_installed(&active_rustc) {
            return Ok(version.compiler("rustup", None));
        }
        if !rustup_is_known_to_fail(project, version) {
            if rustup_adds_target() && target_is_installed(&active_rustc) {
                return Ok(version.compiler("rustup", None));
            }
            remember_that_rustup_fails(project, version);
        }
    }
    if let Some(compiler) = system_compiler() {
        return Ok(compiler);
    }
    install_system_compiler();
    system_compiler().ok_or_else(|| {
        format!(
            "no compiler for the browser: run `rustup target add {TARGET}`, or on Debian as root \
             `apt-get install {} lld-22`",
            DEBIAN_PACKAGES.join(" ")
        )
    })
}

fn active_rustc() -> Command {
    clean_command("rustc")
}

/// Whether the compiler finds a standard library for the browser where it looks for one.
fn target_is_installed(rustc: &dyn Fn() -> Command) -> bool {
    output_of(rustc().args(["--print", "target-libdir", "--target", TARGET]))
        .is_some_and(|folder| holds_a_core(Path::new(&folder)))
}

fn holds_a_core(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| {
        entries.any(|entry| {
            entry.is_ok_and(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.starts_with("libcore-") && name.ends_with(".rlib")
            })
        })
    })
}

fn rustup_adds_target() -> bool {
    if find_program(&["rustup", "rustup.exe"]).is_none() {
        return false;
    }
    eprintln!("   rustup target add {TARGET}");
    clean_command("rustup").args(["target", "add", TARGET]).stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A failed download takes a while; it is tried again when a toolchain changes or the build folder goes.
fn rustup_is_known_to_fail(project: &Project, active: &Version) -> bool {
    system_compiler().is_some_and(|system| stamp::is_current(&failure_file(project), &failure_stamp(active, &system)))
}

fn remember_that_rustup_fails(project: &Project, active: &Version) {
    if let Some(system) = system_compiler() {
        let folder_is_there = std::fs::create_dir_all(&project.wasm_target).is_ok();
        if folder_is_there && stamp::keep(&failure_file(project), &failure_stamp(active, &system)).is_err() {
            eprintln!("   (the next start will try rustup again)");
        }
    }
}

fn failure_file(project: &Project) -> PathBuf {
    project.wasm_target.join("rustup-cannot-add-the-target")
}

fn failure_stamp(active: &Version, system: &Compiler) -> String {
    Stamp::new().add(active.line.as_bytes()).add(system.version.as_bytes()).text()
}

/// The system's Rust, where it is new enough, has the standard library's source and a linker of its own LLVM.
fn system_compiler() -> Option<Compiler> {
    let version = Version::of(&mut clean_command(SYSTEM_RUSTC))?;
    let sysroot = output_of(clean_command(SYSTEM_RUSTC).args(["--print", "sysroot"]))?;
    let has_source = Path::new(&sysroot).join("lib/rustlib/src/rust/library/Cargo.toml").is_file();
    let linker = find_program(&[&format!("wasm-ld-{}", version.llvm)])?;
    let complete = version.number >= OLDEST && has_source && Path::new(SYSTEM_CARGO).is_file();
    complete.then(|| version.compiler("system", Some(System { linker: linker.to_string_lossy().into_owned() })))
}

/// Installs Debian's Rust, then the linker that belongs to its LLVM.
fn install_system_compiler() {
    if packages::install(&DEBIAN_PACKAGES)
        && let Some(version) = Version::of(&mut clean_command(SYSTEM_RUSTC))
    {
        packages::install(&[&format!("lld-{}", version.llvm)]);
    }
}

/// What `rustc -Vv` says.
#[derive(Debug, PartialEq)]
struct Version {
    line: String,
    release: String,
    number: (u32, u32),
    llvm: u32,
}

impl Version {
    fn of(rustc: &mut Command) -> Option<Self> {
        Self::parse(&output_of(rustc.arg("-Vv"))?)
    }

    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let release = field("release:")?;
        let mut numbers = release.split('.').map(str::parse::<u32>);
        let number = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        let llvm = field("LLVM version:")?.split('.').next()?.parse().ok()?;
        Some(Self { line: text.lines().next()?.to_string(), release: release.to_string(), number, llvm })
    }

    fn compiler(&self, way: &str, system: Option<System>) -> Compiler {
        Compiler { name: format!("{way}-{}", self.release), version: self.line.clone(), system }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "rustc 1.96.0 (ac68faa20 2026-05-25) (built from a source tarball)\nbinary: rustc\n\
        host: x86_64-unknown-linux-gnu\nrelease: 1.96.0\nLLVM version: 22.1.8";

    #[test]
    fn the_compilers_answer_is_read() {
        let version = Version::parse(TEXT).unwrap();
        assert_eq!((version.release.as_str(), version.number, version.llvm), ("1.96.0", (1, 96), 22));
        assert_eq!(version.compiler("system", None).name, "system-1.96.0");
        assert!(version.line.starts_with("rustc 1.96.0 (ac68faa20"));
        assert_eq!(Version::parse("release: nonsense"), None);
    }

    #[test]
    fn a_nightly_and_an_older_release_compare_by_number() {
        let nightly = Version::parse(&TEXT.replace("1.96.0", "1.98.0-nightly")).unwrap();
        assert!(nightly.number > OLDEST);
        assert!(Version::parse(&TEXT.replace("1.96.0", "1.9.0")).unwrap().number < OLDEST);
    }

    #[test]
    fn an_empty_folder_holds_no_standard_library() {
        let folder = std::env::temp_dir().join(format!("turnwise-core-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(!holds_a_core(&folder));
        std::fs::write(folder.join("libcore-0123.rlib"), "").unwrap();
        assert!(holds_a_core(&folder));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
