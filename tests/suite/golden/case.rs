//! One case: its inputs, and the comparison of results with what is expected.

// Some inputs are read by checks that need tensors alone.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

use std::cell::Cell;
use std::path::Path;

use serde_json::Value;

/// A rectangle or a ragged list of rows.
pub type Rows = Vec<Vec<f64>>;

/// Why a case did not pass.
#[derive(Debug)]
pub enum Stop {
    /// The crate does not offer what the inputs state, for this reason.
    DoesNotApply(String),
    /// A result differs.
    Failed(String),
}

/// A case that does not apply.
pub fn does_not_apply<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::DoesNotApply(reason.into()))
}

/// One case of a file.
pub struct Case {
    pub id: String,
    pub source: String,
    inputs: Value,
    expected: Value,
    tolerance: Value,
    must_not_match: Value,
    /// Only positions with `loss_mask` 1 are defined.
    only_trained: bool,
    compared: Cell<usize>,
}

/// The topic and the cases of a file.
pub fn read_file(path: &Path) -> Result<(String, Vec<Case>), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let topic = file["topic"].as_str().ok_or("it has no `topic`")?.to_string();
    let cases = file["cases"].as_array().ok_or("it has no `cases`")?;
    let case = |case: &Value| Case {
        id: case["id"].as_str().unwrap_or("(without id)").to_string(),
        source: case["source"].as_str().unwrap_or_default().to_string(),
        inputs: case["inputs"].clone(),
        expected: case["expected"].clone(),
        tolerance: case["tolerance"].clone(),
        must_not_match: case["must_not_match"]["expected"].clone(),
        only_trained: case["compare_where"] == "loss_mask",
        compared: Cell::new(0),
    };
    Ok((topic, cases.iter().map(case).collect()))
}

/// A number; words for numbers that JSON lacks are understood, `null` is not a number.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(word) => word.parse().ok(), // "-inf", "nan"
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        value => value.as_f64(),
    }
}

fn numbers(value: &Value) -> Option<Vec<f64>> {
    value.as_array()?.iter().map(number).collect()
}

impl Case {
    fn missing(name: &str) -> Stop {
        Stop::DoesNotApply(format!("unknown inputs: no usable `{name}`"))
    }

    /// Whether the inputs have an entry, `null` included.
    pub fn has(&self, name: &str) -> bool {
        self.inputs.get(name).is_some()
    }

    /// An entry of the inputs as it is; `null` where there is none.
    pub fn raw(&self, name: &str) -> &Value {
        &self.inputs[name]
    }

    /// A number.
    pub fn number(&self, name: &str) -> Result<f64, Stop> {
        self.optional(name).ok_or_else(|| Case::missing(name))
    }

    /// A number, or nothing where it is missing or `null`.
    pub fn optional(&self, name: &str) -> Option<f64> {
        number(&self.inputs[name])
    }

    /// A word, empty where there is none.
    pub fn word(&self, name: &str) -> &str {
        self.inputs[name].as_str().unwrap_or_default()
    }

    /// A list of numbers.
    pub fn list(&self, name: &str) -> Result<Vec<f64>, Stop> {
        numbers(&self.inputs[name]).ok_or_else(|| Case::missing(name))
    }

    /// A list of lists of numbers.
    pub fn rows(&self, name: &str) -> Result<Rows, Stop> {
        let rows = self.inputs[name].as_array().and_then(|rows| rows.iter().map(numbers).collect());
        rows.ok_or_else(|| Case::missing(name))
    }

    /// Advantages: one number per token, or one per row that holds for all its tokens.
    pub fn advantages(&self) -> Result<Rows, Stop> {
        match self.list("advantages") {
            Ok(per_row) => {
                let mask = self.rows("loss_mask")?;
                Ok(per_row.iter().zip(mask).map(|(&advantage, row)| vec![advantage; row.len()]).collect())
            }
            Err(_) => self.rows("advantages"),
        }
    }

    /// What is expected under a name.
    pub fn expects(&self, name: &str) -> Option<&Value> {
        self.expected.get(name)
    }

    /// Compares one number, if the case expects it.
    pub fn close(&self, name: &str, got: f64) -> Result<(), Stop> {
        self.compare(name, &[got], None)
    }

    /// Compares a list, if the case expects it.
    pub fn close_list(&self, name: &str, got: &[f64]) -> Result<(), Stop> {
        self.compare(name, got, None)
    }

    /// Compares lists of lists, if the case expects them; only trained positions where the source defines no others.
    pub fn close_rows(&self, name: &str, got: &Rows) -> Result<(), Stop> {
        let mask = if self.only_trained { Some(self.rows("loss_mask")?.concat()) } else { None };
        self.compare(name, &got.concat(), mask.as_deref())
    }

    /// Compares one entry of a table, if the case has it; the tolerance is that of the table.
    pub fn close_entry(&self, table: &str, entry: &str, got: &[f64]) -> Result<(), Stop> {
        let Some(expected) = self.expected.get(table).and_then(|table| table.get(entry)) else { return Ok(()) };
        let result = self.compare_with(table, expected, got, None);
        result.map_err(|stop| match stop {
            Stop::Failed(what) => Stop::Failed(format!("{entry}: {what}")),
            other => other,
        })
    }

    fn compare(&self, name: &str, got: &[f64], mask: Option<&[f64]>) -> Result<(), Stop> {
        self.expected.get(name).map_or(Ok(()), |expected| self.compare_with(name, expected, got, mask))
    }

    fn compare_with(&self, name: &str, expected: &Value, got: &[f64], mask: Option<&[f64]>) -> Result<(), Stop> {
        let expected = flatten(expected).ok_or_else(|| Stop::Failed(format!("`{name}` is not made of numbers")))?;
        if expected.len() != got.len() {
            return Err(Stop::Failed(format!("`{name}` has {} numbers, expected {}", got.len(), expected.len())));
        }
        let defined = |index: usize| mask.is_none_or(|mask| mask[index] != 0.0);
        for (index, (&got, &expected)) in got.iter().zip(&expected).enumerate().filter(|(index, _)| defined(*index)) {
            if !self.within(name, got, expected) {
                return Err(Stop::Failed(format!("`{name}` number {index} is {got}, expected {expected}")));
            }
        }
        let wrong = flatten(&self.must_not_match[name]).filter(|wrong| !wrong.is_empty() && wrong.len() == got.len());
        if wrong.is_some_and(|wrong| got.iter().zip(&wrong).all(|(&got, &wrong)| self.within(name, got, wrong))) {
            return Err(Stop::Failed(format!("`{name}` is what a known defect gives")));
        }
        self.compared.set(self.compared.get() + 1);
        Ok(())
    }

    /// Whether two numbers agree within the case's tolerance. Not-a-number agrees with nothing.
    pub fn within(&self, name: &str, got: f64, expected: f64) -> bool {
        let (abs, rel) = match number(&self.tolerance[name]) {
            Some(abs) => (abs, 0.0),
            None => (number(&self.tolerance["abs"]).unwrap_or(0.0), number(&self.tolerance["rel"]).unwrap_or(0.0)),
        };
        got == expected || (got - expected).abs() <= abs + rel * expected.abs()
    }

    /// To be called last: a case of which nothing was compared has not passed.
    pub fn done(&self) -> Result<(), Stop> {
        if self.compared.get() > 0 { Ok(()) } else { does_not_apply("unknown results: none of them is computed here") }
    }
}

/// All numbers in a value, however nested.
fn flatten(value: &Value) -> Option<Vec<f64>> {
    match value {
        Value::Array(items) => Some(items.iter().map(flatten).collect::<Option<Vec<_>>>()?.concat()),
        Value::Null | Value::Object(_) => None,
        value => number(value).map(|number| vec![number]),
    }
}

#[test]
fn the_comparison_can_fail() {
    let case = |expected: &str, wrong: &str| Case {
        id: String::new(),
        source: String::new(),
        inputs: serde_json::json!({"loss_mask": [[1, 0]]}),
        expected: serde_json::from_str(expected).unwrap(),
        tolerance: serde_json::json!({"abs": 1e-6, "rel": 1e-5}),
        must_not_match: serde_json::from_str(wrong).unwrap(),
        only_trained: true,
        compared: Cell::new(0),
    };
    let failed = |result: Result<(), Stop>| matches!(result, Err(Stop::Failed(_)));
    assert!(case(r#"{"a": 1.0}"#, "null").close("a", 1.000_005).is_ok());
    assert!(failed(case(r#"{"a": 1.0}"#, "null").close("a", 1.000_02)));
    assert!(failed(case(r#"{"a": 1.0}"#, "null").close("a", f64::NAN)));
    assert!(failed(case(r#"{"a": 1.0}"#, r#"{"a": 1.0}"#).close("a", 1.0)));
    assert!(failed(case(r#"{"a": [[1, 2]]}"#, "null").close_rows("a", &vec![vec![1.0]])));
    assert!(case(r#"{"a": [[1, 2]]}"#, "null").close_rows("a", &vec![vec![1.0, f64::NAN]]).is_ok());
    assert!(failed(case(r#"{"a": [[1, 2]]}"#, "null").close_rows("a", &vec![vec![2.0, 2.0]])));
    assert!(case(r#"{"a": 1.0}"#, "null").done().is_err());
}
