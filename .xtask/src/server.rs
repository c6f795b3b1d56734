//! Serves the built page on this machine alone, as a plain static host would: no special headers, any sub-path.

use crate::project::{Outcome, clean_command, find_program};
use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

const FIRST_PORT: u16 = 8080;
const LAST_PORT: u16 = 8099;

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
    let (address, thread) = start(folder, options)?;
    let mut out = std::io::stdout();
    writeln!(out, "{address}").and_then(|()| out.flush()).map_err(|error| format!("the address cannot be printed: {error}"))?;
    eprintln!("-- serving {} (Ctrl-C ends)", folder.display());
    if options.open {
        open_browser(&address);
    }
    thread.join().map_err(|_| "the server stopped".to_string())
}

/// Starts serving in a thread; gives the address, as in `http://localhost:8080/`.
pub fn start(folder: &Path, options: &Options) -> Outcome<(String, std::thread::JoinHandle<()>)> {
    let root = folder.canonicalize().map_err(|_| format!("{} is missing: `cargo xtask build` makes it", folder.display()))?;
    let site = Arc::new(Site { root, prefix: options.prefix.clone() });
    let failed = |error: std::io::Error| format!("the server cannot start: {error}");
    let listener = listen(options.port)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    let address = format!("http://localhost:{port}{}", site.prefix);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(failed)?;
    let router = Router::new().fallback(move |request: Request<Body>| {
        let site = Arc::clone(&site);
        async move { site.answer(request.method(), request.uri().path(), request.headers()) }
    });
    let thread = std::thread::spawn(move || {
        let served = runtime.block_on(async { axum::serve(tokio::net::TcpListener::from_std(listener)?, router).await });
        if let Err(error) = served {
            eprintln!("error: the server stopped: {error}");
        }
    });
    Ok((address, thread))
}

fn listen(port: Option<u16>) -> Outcome<TcpListener> {
    let on = |port: u16| TcpListener::bind(("127.0.0.1", port)).map_err(|error| format!("port {port} cannot be used: {error}"));
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
    fn answer(&self, method: &Method, target: &str, headers: &HeaderMap) -> Response<Body> {
        if method != Method::GET && method != Method::HEAD {
            return text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        }
        match self.find(target) {
            // A file that goes away meanwhile is not found.
            Found::File(path) => file(&path, headers).unwrap_or_else(|_| text(StatusCode::NOT_FOUND, "not found\n")),
            Found::Redirect(to) => {
                let mut response = text(StatusCode::FOUND, "");
                // A prefix is plain ASCII, which a header can have.
                response.headers_mut().extend(to.parse().map(|to| (LOCATION, to)));
                response
            }
            Found::Nothing => text(StatusCode::NOT_FOUND, "not found\n"),
        }
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

fn text(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// The whole file, so that it goes out with its length: the page shows the progress of its download.
fn file(path: &Path, headers: &HeaderMap) -> std::io::Result<Response<Body>> {
    let codings = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    let accepts_brotli = codings.into_iter().any(|value| accepts(value, "br"));
    let compressed = PathBuf::from(format!("{}.br", path.display()));
    let encoded = accepts_brotli && is_newer(&compressed, path);
    let mut response = Response::new(Body::from(fs::read(if encoded { &compressed } else { path })?));
    let fixed = [
        (CONTENT_TYPE, media_type(path)),
        (CACHE_CONTROL, "no-cache"),
        (VARY, "Accept-Encoding"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    response.headers_mut().extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    if encoded {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("br"));
    }
    Ok(response)
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
        let (address, _thread) = start(&site.root, &options).unwrap();
        let port: u16 = address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let lines: Vec<String> = BufReader::new(stream).lines().map(Result::unwrap).collect();
        assert!(lines[0].contains("200"), "{lines:?}");
        for wanted in ["Content-Length: 4", "Content-Type: text/html; charset=utf-8", "Cache-Control: no-cache", "page"] {
            assert!(lines.iter().any(|line| line.eq_ignore_ascii_case(wanted)), "{wanted} in {lines:?}");
        }
        fs::remove_dir_all(&base).unwrap();
    }

    /// A browser opens several connections at once and keeps them: none may wait for another to end.
    #[test]
    fn connections_that_are_kept_are_all_answered() {
        use std::io::Read;
        let (base, site) = site("kept");
        let options = Options { port: Some(0), open: false, build: false, prefix: "/".to_string() };
        for _ in 0..5 {
            let (address, _thread) = start(&site.root, &options).unwrap();
            let port: u16 = address.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
            let mut streams: Vec<_> = (0..24).map(|_| std::net::TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
            for stream in &mut streams {
                stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
                write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            }
            for stream in &mut streams {
                let mut first = [0; 12];
                stream.read_exact(&mut first).expect("every connection is answered while the others stay open");
                assert_eq!(&first, b"HTTP/1.1 200");
            }
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
