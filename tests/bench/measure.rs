//! What the benchmarks share: medians and quartiles, and resident memory.

/// Lower quartile, median and upper quartile, between two values where they fall there; zeros of nothing.
pub fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1) as f64;
    let at = |place: f64| sorted.get(place as usize).copied().unwrap_or(0.0);
    [0.25, 0.5, 0.75].map(|share| {
        let place = last * share;
        at(place.floor()) + (at(place.ceil()) - at(place.floor())) * place.fract()
    })
}

/// Resident memory of this process; 0 where the system does not tell in this way.
pub fn resident_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|rest| rest.split_whitespace().next());
    kilobytes.and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
