//! The syntax of a fragment: `key=value` pairs between `&`, %-codes, and the check code at the end.

use std::fmt::Write;

/// One `key=value` of a fragment. The value is missing where there is no `=` or a %-code is wrong.
pub(super) struct Field<'a> {
    pub raw: &'a str,
    pub key: String,
    pub value: Option<String>,
}

impl<'a> Field<'a> {
    fn parse(raw: &'a str) -> Self {
        let (key, value) = raw.split_once('=').map_or((raw, None), |(key, value)| (key, Some(value)));
        Field { raw, key: decode(key).unwrap_or_else(|| key.to_owned()), value: value.and_then(decode) }
    }
}

/// The fields of a link in order, empty ones left out.
pub(super) fn parse(link: &str) -> Vec<Field<'_>> {
    fragment(link).split('&').filter(|part| !part.is_empty()).map(Field::parse).collect()
}

/// The check code of fields that were read, that of `c` aside.
pub(super) fn code_of(fields: &[Field]) -> String {
    let others = fields.iter().filter(|field| field.key != "c");
    check_code(others.map(|field| (field.key.as_str(), field.value.as_deref().unwrap_or(field.raw))))
}

/// The fragment of fields, with their check code at its end.
pub(super) fn write(fields: &[(String, String)]) -> String {
    let code = check_code(fields.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let mut link = String::new();
    for (key, value) in fields {
        link.push_str(key);
        link.push('=');
        encode(value, &mut link);
        link.push('&');
    }
    link + "c=" + &code
}

/// The part after `#`, if there is one. A text without `#` is a fragment itself unless it is an address, and in one that starts
/// like a fragment a `#` is a mistake in it.
fn fragment(link: &str) -> &str {
    let link = link.trim();
    let is_address = link.split('=').next().is_some_and(|start| start.contains("://"));
    match link.split_once('#') {
        Some((_, fragment)) if !link.starts_with("v=") => fragment,
        None if is_address => "",
        _ => link,
    }
}

/// FNV-1a (32 bits, Fowler, Noll and Vo) over the decoded fields, so that it does not depend on how they are encoded. A change
/// of a single byte always changes it.
fn check_code<'a>(fields: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let bytes = fields.flat_map(|(key, value)| key.bytes().chain([b'=']).chain(value.bytes()).chain([b'&']));
    format!("{:08x}", bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)))
}

/// %-encodes everything but letters, digits and `-_.~` (RFC 3986, unreserved characters).
fn encode(text: &str, link: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            link.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            _ = write!(link, "%{byte:02X}");
        }
    }
}

/// Decodes %-codes; `None` where one is incomplete or the bytes are not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?].map(|digit| char::from(digit).to_digit(16));
                (digits[0]? * 16 + digits[1]?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(decoded).ok()
}
