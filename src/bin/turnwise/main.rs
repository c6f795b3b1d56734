//! The same training natively, from the command line.

mod credit;
mod evaluate;
mod explain;
mod export;
mod lesson;
mod options;
mod train;
mod warm_start;

use std::io::Write;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};

/// What went wrong, in words for the person at the terminal.
type Failure = Box<dyn std::error::Error>;

fn command() -> Command {
    let experiment = Arg::new("experiment")
        .value_name("LINK|FILE.json")
        .help("A link of the page (the whole address or what follows #), or a file with settings in JSON");
    let device =
        Arg::new("device").long("device").value_parser(["auto", "cpu", "gpu"]).default_value("cpu").help("What to compute on");
    let lesson = Arg::new("lesson")
        .long("lesson")
        .value_name("NAME")
        .conflicts_with_all(["experiment", "environment"])
        .help("The settings of a lesson (`turnwise lesson` lists them); options beside it come on top");
    let warm_starts = Arg::new("warm-starts")
        .long("warm-starts")
        .value_name("FOLDER")
        .default_value("www/public/warm-start")
        .help("Where the shipped warm-start checkpoints are");
    let train = Command::new("train")
        .about("Trains, and writes metrics.jsonl, episodes.jsonl, checkpoint.safetensors and experiment.json")
        .arg(experiment.clone())
        .arg(Arg::new("out").long("out").value_name("FOLDER").required(true).help("Where the results go"))
        .arg(Arg::new("record").long("record").value_name("FILE").help("Also keep the run for the page to open on"))
        .arg(
            Arg::new("resume")
                .long("resume")
                .value_name("CHECKPOINT")
                .conflicts_with("lesson")
                .help("Go on from the checkpoint of an interrupted run; without other settings, with its own"),
        )
        .arg(
            Arg::new("other")
                .long("other")
                .action(ArgAction::SetTrue)
                .help("Train the second configuration of a link or lesson, for comparison"),
        )
        .args([device.clone(), warm_starts.clone(), lesson.clone()]);
    let warm_start = Command::new("warm-start")
        .about("Imitates the environment's demonstrator and writes a checkpoint")
        .arg(experiment.clone())
        .arg(Arg::new("out").long("out").value_name("FILE").required(true).help("The checkpoint (safetensors, 16-bit)"))
        .args([device.clone(), lesson.clone()]);
    let evaluate = Command::new("evaluate")
        .about("Plays held-out questions with a checkpoint")
        .arg(Arg::new("checkpoint").value_name("CHECKPOINT").required(true))
        .arg(
            Arg::new("episodes")
                .long("episodes")
                .value_parser(clap::value_parser!(u32).range(1..=65536))
                .default_value("1024")
                .help("How many questions, 1 to 65536"),
        )
        .arg(device.clone());
    let credit = Command::new("credit")
        .about("Measures true credit by playing on from every turn, and how close every credit method comes to it")
        .arg(experiment.clone())
        .arg(
            Arg::new("rolls")
                .long("rolls")
                .value_parser(clap::value_parser!(u32).range(2..=1024))
                .default_value("32")
                .help("Continuations of each state, 2 to 1024"),
        )
        .arg(
            Arg::new("after")
                .long("after")
                .value_parser(clap::value_parser!(u32).range(0..=2000))
                .default_value("0")
                .help("Training steps before the episodes are sampled, 0 to 2000"),
        )
        .arg(Arg::new("checkpoint").long("checkpoint").value_name("CHECKPOINT").help("Start from this policy"))
        .arg(Arg::new("out").long("out").value_name("FOLDER").help("Also write accuracy.json and credit.jsonl"))
        .args([device.clone(), warm_starts.clone(), lesson]);
    let link =
        Command::new("link").about("Explains a link: what it sets, what was clamped or refused").arg(experiment.required(true));
    let export = Command::new("export")
        .about("Writes a checkpoint as a model folder that Hugging Face transformers loads")
        .arg(Arg::new("checkpoint").value_name("CHECKPOINT").required(true))
        .arg(Arg::new("out").long("out").value_name("FOLDER").required(true).help("Where the model goes"));
    let lessons = Command::new("lesson")
        .about("Lists the lessons, or prints one with its link")
        .arg(Arg::new("name").value_name("NAME").help("A lesson of the list"));
    let settings = Command::new("settings").about("Prints every setting with default, bounds and meaning, as Markdown");
    Command::new("turnwise")
        .about("Multi-turn reinforcement learning, small enough to watch")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([
            options::with_settings(train),
            options::with_settings(evaluate),
            options::with_settings(credit),
            options::with_settings(warm_start),
            options::with_settings(link),
            export,
            lessons,
            settings,
        ])
}

fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("train", matches)) => train::run(matches),
        Some(("warm-start", matches)) => warm_start::run(matches),
        Some(("evaluate", matches)) => evaluate::run(matches),
        Some(("credit", matches)) => credit::run(matches),
        Some(("link", matches)) => explain::run(matches),
        Some(("export", matches)) => export::run(matches),
        Some(("lesson", matches)) => lesson::run(matches),
        _ => {
            // A reader that has heard enough (`| head`) is no error.
            let _ = writeln!(std::io::stdout(), "{}", turnwise::config::markdown(turnwise::environment::REGISTRY));
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    match run(&command().get_matches()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("turnwise: {failure}");
            ExitCode::FAILURE
        }
    }
}
