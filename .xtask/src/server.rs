//! Serves the built page on this machine alone, as a plain static host would: no special headers, any sub-path.

use crate::project::{Outcome, clean_command, find_program};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

const FIRST_PORT: u16 = 8080;
const LAST_PORT: u16 = 8099;
const THREADS: usize = 4;

/// How to serve.
#[derive(Debug, PartialEq)]
pub struct Options {
    /// The port; `None` for the first free one from 8080; 0 for any free one.
    pub port: Option<u16>,
    /// Whether to open a browser.
    pub open: bool,
    /// Whether to build first.
    pub build: bool,
    /// The path below which the page lies, with a slash at both ends.
    pub prefix: String,
}

impl Options {
    /// Reads the arguments of `serve`.
    pub fn parse(arguments: &[String]) -> Outcome<Self> {
        let mut options = Self { port: None, open: true, build: true, prefix: "/".to_string() };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--port" => {
                    let text = value()?;
                    options.port = Some(text.parse().map_err(|_| format!("--port {text}: a number from 0 to 65535 is needed"))?);
                }
                "--prefix" => options.prefix = with_slashes(value()?)?,
                "--no-open" => options.open = false,
                "--no-build" => options.build = false,
                other => return Err(format!("serve does not know `{other}`; `cargo xtask help` lists what it knows")),
            }
        }
        Ok(options)
    }
}

fn with_slashes(prefix: &str) -> Outcome<String> {
    let inner = prefix.trim_matches('/');
    if !inner.chars().all(|letter| letter.is_ascii_alphanumeric() || "/-._~".contains(letter)) {
        return Err(format!("--prefix {prefix}: only letters, digits, `/`, `-`, `.`, `_` and `~`"));
    }
    Ok(if inner.is_empty() { "/".to_string() } else { format!("/{inner}/") })
}

/// Serves until the process ends; the address is the first line on the standard output.
pub fn serve(folder: &Path, options: &Options) -> Outcome<()> {
    let (address, threads) = start(folder, options)?;
    let mut out = std::io::stdout();
    writeln!(out, "{address}").and_then(|()| out.flush()).map_err(|error| format!("the address cannot be printed: {error}"))?;
    eprintln!("-- serving {} (Ctrl-C ends)", folder.display());
    if options.open {
        open_browser(&address);
    }
    for thread in threads {
        thread.join().map_err(|_| "the server stopped".to_string())?;
    }
    Ok(())
}

/// Starts serving in threads; gives the address, as in `http://localhost:8080/`.
pub fn start(folder: &Path, options: &Options) -> Outcome<(String, Vec<std::thread::JoinHandle<()>>)> {
    let root = folder.canonicalize().map_err(|_| format!("{} is missing: `cargo xtask build` makes it", folder.display()))?;
    let server = Arc::new(listen(options.port)?);
    let port = server.server_addr().to_ip().map_or(0, |address| address.port());
    let site = Arc::new(Site { root, prefix: options.prefix.clone() });
    let address = format!("http://localhost:{port}{}", site.prefix);
    let threads = (0..THREADS)
        .map(|_| {
            let (server, site) = (Arc::clone(&server), Arc::clone(&site));
            std::thread::spawn(move || server.incoming_requests().for_each(|request| site.answer(request)))
        })
        .collect();
    Ok((address, threads))
}

fn listen(port: Option<u16>) -> Outcome<Server> {
    let on = |port: u16| Server::http(("127.0.0.1", port)).map_err(|error| format!("port {port} cannot be used: {error}"));
    match port {
        Some(port) => on(port),
        None => (FIRST_PORT..=LAST_PORT)
            .find_map(|port| on(port).ok())
            .ok_or(format!("no port from {FIRST_PORT} to {LAST_PORT} is free: choose one with --port")),
    }
}

fn open_browser(address: &str) {
    let has_display = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let mut opener = if cfg!(target_os = "macos") {
        clean_command("open")
    } else if cfg!(windows) {
        let mut cmd = clean_command("cmd");
        cmd.args(["/C", "start", ""]);
        cmd
    } else if (has_display("DISPLAY") || has_display("WAYLAND_DISPLAY")) && find_program(&["xdg-open"]).is_some() {
        clean_command("xdg-open")
    } else {
        return;
    };
    // Not waited for: some openers last as long as the browser. Without one the address on the screen is enough.
    let _ = opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
}

/// A folder served below a path.
struct Site {
    root: PathBuf,
    prefix: String,
}

/// What a request leads to.
#[derive(Debug, PartialEq)]
enum Found {
    File(PathBuf),
    Redirect(String),
    Nothing,
}

impl Site {
    fn answer(&self, request: Request) {
        let text = |status: u16, text: &str| {
            with(Response::from_string(text).with_status_code(StatusCode(status)), "Content-Type", "text/plain; charset=utf-8")
        };
        let sent = match request.method() {
            Method::Get | Method::Head => match self.find(request.url()) {
                Found::File(path) => Self::send(request, &path),
                Found::Redirect(to) => request.respond(with(text(302, ""), "Location", &to)),
                Found::Nothing => request.respond(text(404, "not found\n")),
            },
            _ => request.respond(text(405, "only GET and HEAD\n")),
        };
        // A browser that has gone away in the middle is no fault of the server.
        drop(sent);
    }

    fn send(request: Request, path: &Path) -> std::io::Result<()> {
        let accepts_brotli = request
            .headers()
            .iter()
            .filter(|header| header.field.equiv("Accept-Encoding"))
            .any(|header| accepts(header.value.as_str(), "br"));
        let compressed = PathBuf::from(format!("{}.br", path.display()));
        let encoded = accepts_brotli && is_newer(&compressed, path);
        let file = File::open(if encoded { &compressed } else { path })?;
        // Always with a length: the page shows the progress of its download.
        let mut response = Response::from_file(file).with_chunked_threshold(usize::MAX);
        for (name, value) in [
            ("Content-Type", media_type(path)),
            ("Cache-Control", "no-cache"),
            ("Vary", "Accept-Encoding"),
            ("X-Content-Type-Options", "nosniff"),
        ] {
            response = with(response, name, value);
        }
        request.respond(if encoded { with(response, "Content-Encoding", "br") } else { response })
    }

    /// Finds the file of a request's target. Nothing outside the folder is ever found.
    fn find(&self, target: &str) -> Found {
        let path = target.split(['?', '#']).next().unwrap_or_default();
        let Some(decoded) = percent_decoded(path) else { return Found::Nothing };
        if format!("{decoded}/") == self.prefix {
            return Found::Redirect(self.prefix.clone());
        }
        let Some(inner) = decoded.strip_prefix(&self.prefix) else { return Found::Nothing };
        let relative = Path::new(inner);
        let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || inner.contains(['\\', '\0']) {
            return Found::Nothing;
        }
        let full = self.root.join(relative);
        let file = if full.is_dir() { full.join("index.html") } else { full };
        match file.canonicalize() {
            Ok(real) if real.starts_with(&self.root) && real.is_file() => Found::File(real),
            _ => Found::Nothing,
        }
    }
}

/// The response with one more header. Every name and value here is plain ASCII (a prefix is checked), so none is left out.
fn with<R: Read>(response: Response<R>, name: &str, value: &str) -> Response<R> {
    match Header::from_bytes(name, value) {
        Ok(header) => response.with_header(header),
        Err(()) => response,
    }
}

/// Whether an `Accept-Encoding` header names the coding without refusing it by `q=0`.
fn accepts(value: &str, coding: &str) -> bool {
    value.split(',').any(|part| {
        let mut pieces = part.split(';').map(str::trim);
        let named = pieces.next().is_some_and(|name| name.eq_ignore_ascii_case(coding));
        named && !pieces.any(|parameter| parameter.strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0))
    })
}

fn is_newer(compressed: &Path, original: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    changed(compressed).is_some_and(|time| Some(time) >= changed(original))
}

/// `%41` as `A`; `None` where an escape is broken or the result is no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        if bytes[at] == b'%' {
            let digits = text.get(at + 1..at + 3).filter(|pair| pair.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8(out).ok()
}

fn media_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json; charset=utf-8",
        "wasm" => "application/wasm",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" | "jsonl" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A site below `/some/path/`, with a secret beside it and, where links can be made, a link to that secret inside it.
    fn site(name: &str) -> (PathBuf, Site) {
        let base = std::env::temp_dir().join(format!("turnwise-site-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&base);
        fs::create_dir_all(base.join("dist/assets")).unwrap();
        fs::write(base.join("secret.txt"), "secret").unwrap();
        fs::write(base.join("dist/index.html"), "page").unwrap();
        fs::write(base.join("dist/assets/a b.js"), "code").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(base.join("secret.txt"), base.join("dist/link.txt")).unwrap();
        let root = base.join("dist").canonicalize().unwrap();
        (base, Site { root, prefix: "/some/path/".to_string() })
    }

    #[test]
    fn files_are_found_below_the_prefix_only() {
        let (base, site) = site("found");
        let file = |inner: &str| Found::File(site.root.join(inner));
        assert_eq!(site.find("/some/path/"), file("index.html"));
        assert_eq!(site.find("/some/path/index.html?x=1#v=1"), file("index.html"));
        assert_eq!(site.find("/some/path/assets/a%20b.js"), file("assets/a b.js"));
        assert_eq!(site.find("/some/path"), Found::Redirect("/some/path/".to_string()));
        for target in ["/", "/index.html", "/some/pathindex.html", "/some/path/none.js", "/some/path/assets/", ""] {
            assert_eq!(site.find(target), Found::Nothing, "{target}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn nothing_outside_the_folder_is_found() {
        let (base, site) = site("outside");
        let secret = base.join("secret.txt");
        let absolute = format!("/some/path/{}", secret.display());
        for target in [
            "/some/path/../secret.txt",
            "/some/path/assets/../../secret.txt",
            "/some/path/%2e%2e/secret.txt",
            "/some/path/%2E%2E%2Fsecret.txt",
            "/some/path/..%5csecret.txt",
            "/some/path/..%2f..%2f..%2fetc/passwd",
            "/some/path//etc/passwd",
            "/some/path/link.txt",
            "/some/path/index.html%00.js",
            "/some/path/%zz",
            "/some/path/%+1",
            "/some/path/%ff",
            "/some/path/%",
            &absolute,
        ] {
            assert_eq!(site.find(target), Found::Nothing, "{target}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    #[test]
    fn media_types_are_what_browsers_insist_on() {
        assert_eq!(media_type(Path::new("a.wasm")), "application/wasm");
        assert_eq!(media_type(Path::new("a.b.js")), "text/javascript; charset=utf-8");
        assert_eq!(media_type(Path::new("index.html")), "text/html; charset=utf-8");
        assert_eq!(media_type(Path::new("search.safetensors")), "application/octet-stream");
    }

    #[test]
    fn compressed_files_go_to_those_who_accept_them() {
        assert!(accepts("gzip, deflate, br", "br") && accepts("BR;q=0.5", "br"));
        assert!(!accepts("gzip, brotli", "br") && !accepts("gzip, br;q=0", "br") && !accepts("", "br"));
    }

    #[test]
    fn options_are_read_and_bad_ones_named() {
        let read = |text: &str| Options::parse(&text.split_whitespace().map(str::to_string).collect::<Vec<_>>());
        let expected = Options { port: Some(0), open: false, build: false, prefix: "/a/b/".to_string() };
        assert_eq!(read("--port 0 --no-open --no-build --prefix a/b"), Ok(expected));
        assert_eq!(read("").map(|options| (options.port, options.open, options.prefix)), Ok((None, true, "/".to_string())));
        for (text, word) in
            [("--port", "--port"), ("--port 70000", "70000"), ("--prefix /a%20b/", "--prefix"), ("--fast", "--fast")]
        {
            assert!(read(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn a_file_goes_over_the_wire_with_its_length_and_type() {
        use std::io::{BufRead, BufReader};
        let (base, site) = site("wire");
        let options = Options { port: Some(0), open: false, build: false, prefix: "/".to_string() };
        let (address, _threads) = start(&site.root, &options).unwrap();
        let port: u16 = address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let lines: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
        assert!(lines[0].contains("200"), "{lines:?}");
        for wanted in ["Content-Length: 4", "Content-Type: text/html; charset=utf-8", "Cache-Control: no-cache", "page"] {
            assert!(lines.iter().any(|line| line == wanted), "{wanted} in {lines:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
