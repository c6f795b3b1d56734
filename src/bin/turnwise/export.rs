//! `turnwise export`: a checkpoint as a model folder that Hugging Face transformers loads.

use std::path::Path;

use clap::ArgMatches;
use turnwise::policy::huggingface;

use crate::options::given;
use crate::train::save;
use crate::{Failure, evaluate};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let checkpoint = evaluate::read(&evaluate::find(Path::new(given(matches, "checkpoint").unwrap_or_default())))?;
    let out = Path::new(given(matches, "out").unwrap_or_default());
    let files = huggingface(&checkpoint)?;
    std::fs::create_dir_all(out).map_err(|error| format!("cannot make the folder {}: {error}", out.display()))?;
    for (name, bytes) in files {
        save(&out.join(name), &bytes)?;
    }
    Ok(())
}
