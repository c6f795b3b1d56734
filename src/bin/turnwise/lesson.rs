//! `turnwise lesson`: the course, or one lesson with its link.

use std::io::Write;

use clap::ArgMatches;
use turnwise::config;
use turnwise::environment::REGISTRY;
use turnwise::lesson::{Lesson, lesson, lessons};

use crate::Failure;
use crate::options::given;

/// The lesson of a name.
///
/// # Errors
/// When there is none: says which there are.
pub fn find(name: &str) -> Result<&'static Lesson, Failure> {
    let names = || lessons().map(|lesson| lesson.name).collect::<Vec<_>>().join(", ");
    lesson(name).ok_or_else(|| format!("there is no lesson \"{name}\"; there are {}", names()).into())
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let text = match given(matches, "name") {
        Some(name) => in_full(find(name)?),
        None => {
            lessons().enumerate().map(|(i, lesson)| format!("{:>2}  {:<16} {}\n", i + 1, lesson.name, lesson.title.en)).collect()
        }
    };
    // A reader that has heard enough (`| head`) is no error.
    let _ = write!(std::io::stdout(), "{text}");
    Ok(())
}

/// A lesson's text and link.
fn in_full(lesson: &Lesson) -> String {
    let mut text = format!(
        "{}\n\nPress: {}\nWatch: {}\nMeaning: {}\nMeasured: {}\n\n",
        lesson.title.en, lesson.press.en, lesson.watch.en, lesson.meaning.en, lesson.evidence.en,
    );
    if let Some(other) = lesson.other_config() {
        for difference in config::differences(&lesson.config(), &other, REGISTRY) {
            text += &format!("compared with {} = {} (here {})\n", difference.name, difference.b, difference.a);
        }
    }
    text + "link: #" + &config::write_link(&lesson.link(), REGISTRY).unwrap_or_default() + "\n"
}
