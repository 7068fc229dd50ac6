//! Unix `ar` archives, which hold a Click configuration and the packages that it needs.

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

const MAGIC: &[u8] = b"!<arch>\n";
/// Length of a member's header: name 16, date 12, user 6, group 6, mode 8, size 10, end mark 2.
const HEADER: usize = 60;

/// Returns the members of an archive; `None` if the bytes are not an archive.
pub(crate) fn read(bytes: &[u8]) -> Option<Result<Vec<Member>, String>> {
    bytes.strip_prefix(MAGIC).map(members)
}

fn members(mut rest: &[u8]) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    let mut long_names: &[u8] = b"";
    while !rest.is_empty() {
        let Some((header, body)) = rest.split_at_checked(HEADER) else {
            return Err("truncated archive".to_string());
        };
        if &header[58..] != b"`\n" {
            return Err("bad archive: bad header magic number".to_string());
        }
        let size = field(&header[48..58]);
        let size: usize = size.parse().map_err(|_| format!("bad archive: size '{size}'"))?;
        let Some(mut data) = body.get(..size) else {
            return Err("truncated archive".to_string());
        };
        // Each member begins at an even offset.
        rest = body.get(size + size % 2..).unwrap_or(b"");
        let raw = field(&header[..16]);
        if raw == "//" {
            long_names = data;
            continue;
        }
        let name = if let Some(length) = raw.strip_prefix("#1/").and_then(|n| n.parse().ok()) {
            // BSD puts a long name before the data.
            let (name, after) = data.split_at_checked(length).ok_or("truncated archive")?;
            data = after;
            field(name)
        } else if let Some(at) = raw.strip_prefix('/').and_then(|n| n.parse::<usize>().ok()) {
            let tail = long_names.get(at..).ok_or("bad archive: bad long name")?;
            field(tail.split(|&b| b == b'/' || b == b'\n').next().unwrap_or(b""))
        } else {
            raw.strip_suffix('/').unwrap_or(&raw).to_string()
        };
        if !name.is_empty() && name != "/" {
            members.push(Member { name, data: data.to_vec() });
        }
    }
    Ok(members)
}

/// Writes an archive of `members` in the format of GNU `ar`. Owners and dates are zero, so that the
/// same members give the same bytes.
pub fn archive(members: &[Member]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let mut long_names = String::new();
    let fields: Vec<String> =
        members.iter().map(|m| name_field(&m.name, &mut long_names)).collect();
    if !long_names.is_empty() {
        push(&mut out, "//", long_names.as_bytes());
    }
    members.iter().zip(&fields).for_each(|(member, name)| push(&mut out, name, &member.data));
    out
}

/// Returns the name field of a member's header: the name, or its offset in the list of long names.
fn name_field(name: &str, long_names: &mut String) -> String {
    if name.len() < 16 && !name.contains(['/', ' ']) {
        return name.to_string();
    }
    let at = long_names.len();
    long_names.push_str(name);
    long_names.push_str("/\n");
    format!("/{at}")
}

fn push(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    let size = data.len();
    out.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 100_644).bytes());
    out.extend(data);
    if size % 2 == 1 {
        out.push(b'\n');
    }
}

fn field(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches([' ', '\0']).to_string()
}
