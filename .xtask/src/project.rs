//! Where things lie, how other programs are run, and how progress is told.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Errors of this tool are sentences for a person.
pub type Outcome<T> = Result<T, String>;

/// The folders of a checkout.
pub struct Project {
    /// The folder with the root `Cargo.toml`.
    pub root: PathBuf,
    /// cargo's build folder for this machine: `CARGO_TARGET_DIR`, else `TURNWISE_CACHE/native`, else `target`.
    pub target: PathBuf,
    /// Build folders for the browser, one per compiler below it: `TURNWISE_CACHE/wasm`, else `wasm` in `target`.
    pub wasm_target: PathBuf,
}

impl Project {
    /// Finds the checkout from the folder of this tool's manifest (cargo tells it), else upwards from the current folder.
    pub fn find() -> Outcome<Self> {
        let start = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(folder) => PathBuf::from(folder),
            None => std::env::current_dir().map_err(|error| format!("the current folder cannot be read: {error}"))?,
        };
        let root = start
            .ancestors()
            .find(|folder| folder.join(".xtask/Cargo.toml").is_file())
            .ok_or("run this inside a checkout of Turnwise")?
            .to_path_buf();
        let absolute = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(|value| root.join(value));
        let cache = absolute("TURNWISE_CACHE");
        let target = absolute("CARGO_TARGET_DIR")
            .or_else(|| cache.as_ref().map(|folder| folder.join("native")))
            .unwrap_or_else(|| root.join("target"));
        let wasm_target = cache.map_or_else(|| target.join("wasm"), |folder| folder.join("wasm"));
        Ok(Self { root, target, wasm_target })
    }

    /// The page's source folder.
    pub fn www(&self) -> PathBuf {
        self.root.join("www")
    }

    /// The static folder that is published.
    pub fn dist(&self) -> PathBuf {
        self.root.join("www/dist")
    }

    /// A program to be run in the root of the checkout, for this machine, without what `cargo run` set for this tool.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = clean_command(program);
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target);
        command
    }
}

/// A program without the variables that `cargo run` set for this tool: they describe this tool's package, and its library
/// path would put one toolchain's libraries before another's.
pub fn clean_command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"].contains(&text.as_ref()) {
            command.env_remove(&name);
        }
    }
    for name in ["LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"] {
        if let Some(value) = std::env::var_os(name) {
            let kept = std::env::split_paths(&value).filter(|path| !is_toolchain_folder(path));
            match std::env::join_paths(kept) {
                Ok(joined) if !joined.is_empty() => command.env(name, joined),
                _ => command.env_remove(name),
            };
        }
    }
    command
}

fn is_toolchain_folder(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "rustlib" || part.as_os_str() == "toolchains" || part.as_os_str() == "deps")
}

/// Runs a program with its output shown; `what` names it in the error.
pub fn run(command: &mut Command, what: &str) -> Outcome<()> {
    let status = command.stdin(Stdio::null()).status().map_err(|error| format!("{what} could not be started: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{what} failed ({status})")) }
}

/// Runs a program and gives its standard output; `None` where it cannot be started or fails.
pub fn output_of(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Says what is being done, does it, says how long it took.
pub fn stage<T>(what: &str, work: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    eprintln!("-- {what}");
    let start = Instant::now();
    let result = work()?;
    eprintln!("   done in {}", seconds(start));
    Ok(result)
}

/// The time since `start`, as a person reads it.
pub fn seconds(start: Instant) -> String {
    let elapsed = start.elapsed();
    let whole = elapsed.as_secs();
    if whole < 60 { format!("{:.1} s", elapsed.as_secs_f64()) } else { format!("{} min {:02} s", whole / 60, whole % 60) }
}

/// The first of these programs that is on the path.
pub fn find_program(names: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    names.iter().find_map(|name| std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchains_library_folder_is_not_handed_on() {
        assert!(is_toolchain_folder(Path::new("home/.rustup/toolchains/stable/lib")));
        assert!(is_toolchain_folder(Path::new("project/target/tool/deps")));
        assert!(!is_toolchain_folder(Path::new("opt/vulkan/lib")));
    }
}
