//! Tells whether something must be built again: a hash of all that goes into it, kept beside what came out.

use crate::project::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

/// A running 128-bit FNV-1a hash (Fowler, Noll and Vo). It guards against forgotten rebuilds, not against attackers.
pub struct Stamp(u128);

impl Stamp {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013B;

    pub fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(Self::PRIME);
        }
    }

    /// Adds one piece of data; its length goes in too, so that pieces cannot run together.
    pub fn add(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes(&(bytes.len() as u64).to_le_bytes());
        self.bytes(bytes);
        self
    }

    /// Adds a file, or every file below a folder, with its path from `root`. A path that is not there counts as such.
    /// `skip` leaves out files and folders by their path from `root`, written with `/`.
    pub fn add_path(&mut self, root: &Path, path: &str, skip: &dyn Fn(&str) -> bool) -> Outcome<&mut Self> {
        for file in files_below(root, path, skip)? {
            let bytes = fs::read(root.join(&file)).map_err(|error| format!("{file} cannot be read: {error}"))?;
            self.add(file.as_bytes()).add(&bytes);
        }
        self.add(b"end");
        Ok(self)
    }

    /// The hash as 32 hexadecimal digits.
    pub fn text(&self) -> String {
        format!("{:032x}", self.0)
    }
}

/// All files at or below `path`, as paths from `root` written with `/`, in order.
fn files_below(root: &Path, path: &str, skip: &dyn Fn(&str) -> bool) -> Outcome<Vec<String>> {
    let (mut found, mut open) = (Vec::new(), vec![path.to_string()]);
    while let Some(next) = open.pop() {
        let full = root.join(&next);
        if skip(&next) || !full.exists() {
            continue;
        }
        if full.is_dir() {
            let entries = fs::read_dir(&full).map_err(|error| format!("{next} cannot be read: {error}"))?;
            for entry in entries {
                let name = entry.map_err(|error| format!("{next} cannot be read: {error}"))?.file_name();
                open.push(format!("{next}/{}", name.to_string_lossy()));
            }
        } else {
            found.push(next);
        }
    }
    found.sort();
    Ok(found)
}

/// Whether the stamp kept in `file` is this one.
pub fn is_current(file: &Path, stamp: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|kept| kept.trim() == stamp)
}

/// Keeps the stamp; written last, so that an interrupted build has none.
pub fn keep(file: &PathBuf, stamp: &str) -> Outcome<()> {
    fs::write(file, format!("{stamp}\n")).map_err(|error| format!("{} cannot be written: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("turnwise-stamp-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("src/deep")).unwrap();
        fs::write(folder.join("src/a.rs"), "a").unwrap();
        fs::write(folder.join("src/deep/b.rs"), "b").unwrap();
        folder
    }

    fn stamp_of(folder: &Path, skip: &dyn Fn(&str) -> bool) -> String {
        Stamp::new().add_path(folder, "src", skip).unwrap().text()
    }

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the authors: the empty string and "foobar", 128 bits.
        assert_eq!(Stamp::new().text(), "6c62272e07bb014262b821756295c58d");
        let mut stamp = Stamp::new();
        stamp.bytes(b"foobar");
        assert_eq!(stamp.text(), "343e1662793c64bf6f0d3597ba446f18");
    }

    #[test]
    fn it_changes_with_content_name_and_new_files_and_with_nothing_else() {
        let folder = folder("changes");
        let all = |_: &str| false;
        let before = stamp_of(&folder, &all);
        assert_eq!(before, stamp_of(&folder, &all));
        fs::write(folder.join("src/deep/b.rs"), "c").unwrap();
        let content = stamp_of(&folder, &all);
        assert_ne!(before, content);
        fs::rename(folder.join("src/deep/b.rs"), folder.join("src/deep/c.rs")).unwrap();
        let name = stamp_of(&folder, &all);
        assert_ne!(content, name);
        fs::write(folder.join("src/new.rs"), "").unwrap();
        assert_ne!(name, stamp_of(&folder, &all));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_skipped_does_not_count() {
        let folder = folder("skip");
        let skip = |path: &str| path == "src/deep";
        let before = stamp_of(&folder, &skip);
        fs::write(folder.join("src/deep/b.rs"), "other").unwrap();
        assert_eq!(before, stamp_of(&folder, &skip));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn pieces_do_not_run_together() {
        assert_ne!(Stamp::new().add(b"ab").add(b"c").text(), Stamp::new().add(b"a").add(b"bc").text());
    }

    #[test]
    fn a_kept_stamp_is_found_again() {
        let folder = folder("kept");
        let file = folder.join("stamp");
        assert!(!is_current(&file, "1"));
        keep(&file, "1").unwrap();
        assert!(is_current(&file, "1") && !is_current(&file, "2"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
