//! Every check of the project, cheapest first. It stops at the first that fails; the last line counts the tests.

use crate::counts::Counts;
use crate::project::{Outcome, Project, seconds};
use crate::{packages, page, server, wasm};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// What to check.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Stop after the checks that need neither the tensor library nor a browser.
    pub quick: bool,
    /// Include the tests marked as slow.
    pub slow: bool,
}

impl Options {
    /// Reads the arguments of `verify`.
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--slow" => options.slow = true,
                other => return Err(format!("verify does not know `{other}`; it knows --quick and --slow")),
            }
        }
        Ok(options)
    }
}

/// Runs the checks; the last line on the standard output is `N passed, N failed`.
pub fn run(project: &Project, options: &Options) -> ExitCode {
    let start = Instant::now();
    let mut checks = Checks { project, options, counts: Counts::default() };
    let result = checks.quick().and_then(|()| if options.quick { Ok(()) } else { checks.full() });
    let code = match result {
        Ok(()) => {
            eprintln!("\nall checks passed in {}", seconds(start));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("\nerror: {message}\nstopped after {}", seconds(start));
            // A check that counts no tests, such as a lint, has failed all the same.
            checks.counts.failed = checks.counts.failed.max(1);
            ExitCode::FAILURE
        }
    };
    println!("{}", checks.counts.line());
    code
}

struct Checks<'a> {
    project: &'a Project,
    options: &'a Options,
    counts: Counts,
}

impl Checks<'_> {
    /// Minutes on a clean machine: formatting, the build tool, the half of the crate without tensors, the page's lint.
    fn quick(&mut self) -> Outcome<()> {
        let deny = ["--", "-D", "warnings"];
        self.check("formatting", self.cargo(&["fmt", "--all", "--check"]))?;
        let tool = ["--package", "xtask", "--profile", "tool", "--locked"];
        self.check("build tool: lints", self.cargo(&["clippy", "--all-targets"]).args(tool).args(deny))?;
        self.check("build tool: tests", self.cargo(&["test"]).args(tool))?;
        let plain = ["--package", "turnwise", "--no-default-features", "--lib", "--locked"];
        self.check("plain half: lints", self.cargo(&["clippy", "--tests"]).args(plain).args(deny))?;
        let before = self.counts;
        self.check("plain half: tests", self.cargo(&["test"]).args(plain))?;
        if !self.options.quick {
            // The tests of the whole crate are these and more: they are counted there.
            self.counts = before;
        }
        self.step("page: packages", |checks| page::install_packages(checks.project))?;
        self.check("page: lints", page::npm(self.project).args(["run", "--silent", "lint"]))
    }

    /// All the rest: the whole crate natively, the browser modules, the built page in a browser.
    fn full(&mut self) -> Outcome<()> {
        let whole = ["--package", "turnwise", "--release", "--locked"];
        self.check("whole crate: lints", self.cargo(&["clippy", "--all-targets"]).args(whole).args(["--", "-D", "warnings"]))?;
        let mut documentation = self.cargo(&["doc", "--lib", "--no-deps"]);
        self.check("whole crate: documentation", documentation.args(whole).env("RUSTDOCFLAGS", "-D warnings"))?;
        let mut tests = self.cargo(&["test"]);
        tests.args(whole);
        if self.options.slow {
            tests.args(["--", "--include-ignored"]);
        }
        self.check("whole crate: tests", &mut tests)?;
        self.step("browser modules", |checks| wasm::build(checks.project, &wasm::Module::ALL))?;
        self.check("page: types", page::npm(self.project).args(["run", "--silent", "check"]))?;
        self.check("page: tests", page::npm(self.project).args(["run", "--silent", "--if-present", "test"]))?;
        self.step("page: build", |checks| page::build(checks.project))?;
        self.step("page: size of a first visit", |checks| {
            let sizes = page::sizes(checks.project)?;
            sizes.print();
            let (size, limit) = (sizes.largest_first_visit(), page::FIRST_VISIT_LIMIT);
            if size <= limit { Ok(()) } else { Err(format!("a first visit transfers {size} bytes; the limit is {limit}")) }
        })?;
        self.step("browser tests", Self::browser_tests)
    }

    /// node's test runner on `tests/browser`, one file at a time, against the built page on a server of its own.
    /// The tests are told by the environment: `TURNWISE_URL`, `TURNWISE_CHROMIUM`, `TURNWISE_TOOL` (this program, to serve again).
    fn browser_tests(&mut self) -> Outcome<()> {
        let chromium = packages::chromium().ok_or(
            "the browser tests need Chromium: install it (on Debian `apt-get install chromium fonts-noto-cjk`) or name one in \
             TURNWISE_CHROMIUM",
        )?;
        let folder = self.project.root.join("tests/browser");
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .map_err(|_| "tests/browser is missing")?
            .filter_map(|entry| entry.ok().map(|entry| entry.path()))
            .filter(|path| path.to_string_lossy().ends_with(".test.js"))
            .collect();
        files.sort();
        if files.is_empty() {
            return Err("tests/browser holds no *.test.js".to_string());
        }
        let local = server::Options { port: Some(0), open: false, build: false, prefix: "/".to_string() };
        let (address, _thread) = server::start(&self.project.dist(), &local)?;
        let tool = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
        let mut node = self.project.command("node");
        node.args(["--test", "--test-concurrency=1", "--test-reporter=spec"]).args(files);
        node.env("TURNWISE_URL", address).env("TURNWISE_CHROMIUM", chromium).env("TURNWISE_TOOL", tool);
        if self.options.slow {
            node.env("TURNWISE_SLOW", "1");
        }
        self.counted(&mut node)
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = self.project.command("cargo");
        cargo.args(arguments);
        cargo
    }

    /// A step that is one program.
    fn check(&mut self, name: &str, mut command: impl std::borrow::BorrowMut<Command>) -> Outcome<()> {
        self.step(name, |checks| checks.counted(command.borrow_mut()))
    }

    /// Names a step, does it, says how long it took.
    fn step(&mut self, name: &str, work: impl FnOnce(&mut Self) -> Outcome<()>) -> Outcome<()> {
        eprintln!("\n== {name}");
        let start = Instant::now();
        let result = work(self).map_err(|message| format!("{name}: {message}"));
        eprintln!("== {name}: {} in {}", if result.is_ok() { "passed" } else { "FAILED" }, seconds(start));
        result
    }

    /// Runs a program, shows what it prints, and counts the tests it reports.
    fn counted(&mut self, command: &mut Command) -> Outcome<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("{program}: {error}");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        let mut out = std::io::stdout();
        if let Some(stdout) = child.stdout.take() {
            for line in BufReader::new(stdout).split(b'\n') {
                let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
                self.counts.add(Counts::of_line(&line));
                writeln!(out, "{line}").and_then(|()| out.flush()).map_err(failed)?;
            }
        }
        let status = child.wait().map_err(failed)?;
        if status.success() { Ok(()) } else { Err(format!("{program} ended with {status}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_bad_ones_named() {
        let read = |text: &str| Options::parse(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        assert_eq!(read("--slow --quick"), Ok(Options { quick: true, slow: true }));
        assert!(read("--fast").unwrap_err().contains("--fast"));
    }
}
