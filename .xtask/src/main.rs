//! The build tool of Turnwise: `cargo serve`, `cargo verify`, `cargo xtask build`.
//!
//! | file | does |
//! | --- | --- |
//! | `main.rs` | reads the command line |
//! | `project.rs` | where things lie; running other programs; saying what is being done |
//! | `toolchain.rs` | finds a compiler that can build for the browser |
//! | `wasm.rs` | the two browser modules and their bindings |
//! | `page.rs` | npm, Vite, the table of sizes |
//! | `server.rs` | serves the built page on this machine |
//! | `stamp.rs` | tells whether something must be built again |
//! | `packages.rs` | installs Debian packages where that is allowed |
//! | `verify.rs`, `counts.rs` | every check, cheapest first; counts the tests |
//!
//! Progress goes to the error stream; the standard output of `serve` is the address alone, so that a program can read it.

mod counts;
mod packages;
mod page;
mod project;
mod server;
mod stamp;
mod toolchain;
mod unused;
mod verify;
mod wasm;

use project::{Outcome, Project};
use std::process::ExitCode;

const USAGE: &str = "\
cargo serve [--port N] [--no-open] [--no-build] [--prefix /PATH/]
    builds what is missing, serves the page on this machine and opens a browser where there is one
      --port N         the port; 0 takes a free one (8080, or the next free one)
      --no-open        opens no browser
      --no-build       serves www/dist as it is
      --prefix /PATH/  serves the page below /PATH/, as a host with sub-paths would
cargo verify [--quick] [--slow]
    runs every check, cheapest first, and closes with the number of tests
      --quick          stops after the half that needs neither the tensor library nor a browser
      --slow           includes the tests marked as slow
cargo xtask build      builds the static folder www/dist and prints what a first visit transfers
cargo xtask wasm [page|cpu|gpu]
                       builds the browser modules alone
cargo xtask types      writes www/src/protocol.ts from the Rust types
cargo xtask help       prints this

Environment: CARGO_TARGET_DIR (build folder), TURNWISE_CACHE (a folder shared between clones), TURNWISE_CHROMIUM (browser for
the browser tests).";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> Outcome<ExitCode> {
    let (command, rest) = arguments.split_first().map_or(("help", &[][..]), |(first, rest)| (first.as_str(), rest));
    match command {
        "serve" => {
            let options = server::Options::parse(rest)?;
            let project = Project::find()?;
            if options.build {
                page::build(&project)?;
            }
            server::serve(&project.dist(), &options)?;
        }
        "build" => {
            nothing_after(rest)?;
            let project = Project::find()?;
            page::build(&project)?;
            page::sizes(&project)?.print();
        }
        "wasm" => {
            let modules = wasm::Module::parse(rest)?;
            wasm::build(&Project::find()?, &modules)?;
        }
        "types" => {
            nothing_after(rest)?;
            write_types(&Project::find()?)?;
        }
        "verify" => {
            let options = verify::Options::parse(rest)?;
            return Ok(verify::run(&Project::find()?, &options));
        }
        "help" | "--help" | "-h" => println!("{USAGE}"),
        other => return Err(format!("no command `{other}`\n\n{USAGE}")),
    }
    Ok(ExitCode::SUCCESS)
}

fn nothing_after(rest: &[String]) -> Outcome<()> {
    rest.first().map_or(Ok(()), |extra| Err(format!("`{extra}` is not understood here\n\n{USAGE}")))
}

/// The test that checks the generated TypeScript rewrites it when `UPDATE_TYPES` is set.
fn write_types(project: &Project) -> Outcome<()> {
    let mut cargo = project.command("cargo");
    cargo.args(["test", "--no-default-features", "--lib", "--quiet"]).env("UPDATE_TYPES", "1");
    project::run(&mut cargo, "cargo test with UPDATE_TYPES=1")
}
