//! Counts tests from what the test runners print at their end.

/// How many tests passed, failed, were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Counts {
    /// What one line of output adds: cargo's `test result:` line, or one of node's closing lines (`# pass 3`, `ℹ pass 3`).
    pub fn of_line(line: &str) -> Self {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix("test result:") {
            let number = |word: &str| {
                let mut words = rest.split([' ', ';', '.']).filter(|text| !text.is_empty()).rev();
                words.find(|text| *text == word).and_then(|_| words.next()).and_then(|text| text.parse().ok()).unwrap_or(0)
            };
            return Self { passed: number("passed"), failed: number("failed"), skipped: number("ignored") };
        }
        let node = line.strip_prefix("# ").or_else(|| line.strip_prefix("ℹ "));
        let Some((word, Ok(number))) = node.and_then(|text| text.split_once(' ')).map(|(word, text)| (word, text.parse())) else {
            return Self::default();
        };
        match word {
            "pass" => Self { passed: number, ..Self::default() },
            "fail" | "cancelled" => Self { failed: number, ..Self::default() },
            "skipped" | "todo" => Self { skipped: number, ..Self::default() },
            _ => Self::default(),
        }
    }

    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// The closing line of a check.
    pub fn line(&self) -> String {
        let skipped = if self.skipped > 0 { format!(", {} skipped", self.skipped) } else { String::new() };
        format!("{} passed, {} failed{skipped}", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(passed: u64, failed: u64, skipped: u64) -> Counts {
        Counts { passed, failed, skipped }
    }

    #[test]
    fn cargos_line_is_read() {
        let line = "test result: ok. 93 passed; 0 failed; 2 ignored; 0 measured; 1 filtered out; finished in 4.20s";
        assert_eq!(Counts::of_line(line), counts(93, 0, 2));
        let line = "test result: FAILED. 1 passed; 12 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";
        assert_eq!(Counts::of_line(line), counts(1, 12, 0));
    }

    #[test]
    fn nodes_lines_are_read() {
        let text = "# tests 6\n# suites 0\n# pass 3\n# fail 1\n# cancelled 1\n# skipped 1\n# todo 0\n# duration_ms 12.5";
        let mut all = Counts::default();
        text.lines().for_each(|line| all.add(Counts::of_line(line)));
        assert_eq!(all, counts(3, 2, 1));
        assert_eq!(Counts::of_line("ℹ pass 7"), counts(7, 0, 0));
    }

    #[test]
    fn other_lines_count_nothing() {
        for line in ["running 3 tests", "# a remark", "test environment::passed ... ok", "", "# pass many"] {
            assert_eq!(Counts::of_line(line), Counts::default(), "{line}");
        }
    }

    #[test]
    fn the_closing_line_has_the_form_that_is_read() {
        assert_eq!(counts(12, 0, 0).line(), "12 passed, 0 failed");
        assert_eq!(counts(12, 1, 3).line(), "12 passed, 1 failed, 3 skipped");
    }
}
