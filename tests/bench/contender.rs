//! Who makes training steps: this crate, in this process, or a Python script in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use turnwise::config::ExperimentConfig;
use turnwise::policy::Policy;
use turnwise::trainer::Trainer;

use crate::measure::resident_mebibytes;

/// What some training steps took and told.
#[derive(Clone, Debug, Default, serde::Deserialize)]
pub struct Steps {
    /// Of each step.
    pub seconds: Vec<f64>,
    /// Processor seconds of one step, all threads together, on average: what it costs however busy the machine is.
    pub processor: f64,
    /// Means over the steps: discounted return, share of right answers, tokens of all episodes.
    pub mean_return: f64,
    pub success: f64,
    pub tokens: f64,
    /// Resident memory of the process after them.
    pub mebibytes: f64,
}

/// Something that makes training steps when told to, and rests otherwise.
pub trait Contender {
    /// What it is called, with versions.
    fn name(&self) -> String;

    /// Makes `count` training steps.
    fn steps(&mut self, count: usize) -> Result<Steps, String>;
}

/// This crate on the native CPU.
pub struct Native(Trainer);

impl Native {
    pub fn new(config: &ExperimentConfig, policy: &Policy) -> Self {
        Native(Trainer::new(config.clone(), policy))
    }
}

impl Contender for Native {
    fn name(&self) -> String {
        format!("turnwise {}", env!("CARGO_PKG_VERSION"))
    }

    fn steps(&mut self, count: usize) -> Result<Steps, String> {
        let (mut result, begun, of) = (Steps::default(), processor_seconds(), 1.0 / count.max(1) as f64);
        for _ in 0..count {
            let start = Instant::now();
            let (_, _, _, report) = pollster::block_on(self.0.train_step()).map_err(|error| error.to_string())?;
            result.seconds.push(start.elapsed().as_secs_f64());
            result.mean_return += report.mean_return * of;
            result.success += report.train_success * of;
            result.tokens += report.tokens as f64 * of;
        }
        result.processor = (processor_seconds() - begun) * of;
        result.mebibytes = resident_mebibytes();
        Ok(result)
    }
}

/// A script of `tests/bench` that answers on its standard output.
pub struct Script {
    name: String,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What a script says first.
#[derive(serde::Deserialize)]
struct Greeting {
    name: String,
    versions: String,
}

impl Script {
    /// Starts a script with the settings of an experiment and a file of weights. `threads` limits the threads of its library.
    ///
    /// # Errors
    /// When Python or a package is missing: the last line that it wrote.
    pub fn start(file: &str, config: &ExperimentConfig, weights: &Path, threads: Option<usize>) -> Result<Self, String> {
        let python = std::env::var("TURNWISE_PYTHON").unwrap_or_else(|_| "python3".to_string());
        let settings = serde_json::to_string(config).map_err(|error| error.to_string())?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bench").join(file);
        let mut command = Command::new(&python);
        command.arg(script).args(["--serve", "--settings", &settings, "--weights"]).arg(weights);
        // Threads without work must not spin: they would take the cores from whoever has its turn.
        command.env("OMP_WAIT_POLICY", "PASSIVE");
        if let Some(threads) = threads {
            command.env("OMP_NUM_THREADS", threads.to_string());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{python}: {error}"))?;
        let (Some(commands), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipe to the script".to_string());
        };
        let mut script = Script { name: String::new(), child, commands, answers: BufReader::new(answers) };
        let greeting: Greeting = script.answer()?;
        script.name = format!("{} ({})", greeting.name, greeting.versions);
        Ok(script)
    }

    /// The next line that the script writes.
    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> Result<T, String> {
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            return Err(self.last_words());
        }
        serde_json::from_str(&line).map_err(|error| error.to_string())
    }

    /// The last line of what a script that ended wrote to its standard error.
    fn last_words(&mut self) -> String {
        let lines = self.child.stderr.take().map(|errors| BufReader::new(errors).lines().map_while(Result::ok).last());
        lines.flatten().unwrap_or_else(|| "the script ended without a word".to_string())
    }
}

impl Contender for Script {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn steps(&mut self, count: usize) -> Result<Steps, String> {
        writeln!(self.commands, "{count}").map_err(|error| error.to_string())?;
        self.answer()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // Nobody is left to tell where this fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor seconds of this process so far, all threads together; 0 where the system does not tell in this way.
fn processor_seconds() -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Fields 14 and 15, counted from 1; the second, in brackets, may hold blanks.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}
