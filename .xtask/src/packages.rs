//! Installs Debian packages where that is allowed: as root on a system with apt-get.

use crate::project::{clean_command, find_program, output_of, run};
use std::path::PathBuf;

/// Tries to install the packages; whether it worked. It does nothing where it is not root or there is no apt-get.
pub fn install(names: &[&str]) -> bool {
    let is_root = output_of(clean_command("id").arg("-u")).as_deref() == Some("0");
    if !is_root || find_program(&["apt-get"]).is_none() {
        return false;
    }
    eprintln!("   apt-get install {}", names.join(" "));
    let attempt = || {
        let mut apt = clean_command("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "-qq", "--no-install-recommends"]).args(names);
        run(apt.stdout(std::io::stderr()), "apt-get install")
    };
    // A fresh machine has no list of packages yet, an old one a stale list.
    attempt()
        .or_else(|_| {
            run(clean_command("apt-get").args(["update", "-qq"]).stdout(std::io::stderr()), "apt-get update")
                .and_then(|()| attempt())
        })
        .map_err(|error| eprintln!("   {error}"))
        .is_ok()
}

/// The browser for the browser tests: `TURNWISE_CHROMIUM`, else one on the path, else Debian's, installed when root.
pub fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("TURNWISE_CHROMIUM").map(PathBuf::from).filter(|path| path.is_file()) {
        return Some(named);
    }
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let mac = PathBuf::from("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome");
    find_program(&names).or_else(|| mac.is_file().then_some(mac)).or_else(|| {
        install(&["chromium", "fonts-noto-cjk"]);
        find_program(&names)
    })
}
