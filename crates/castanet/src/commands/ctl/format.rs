//! Numbers and tables for people.

/// A number with three digits and a prefix of the SI: `0`, `12.3`, `1.23k`, `45.6M`.
pub(super) fn si(value: f64) -> String {
    const PREFIXES: [&str; 6] = ["", "k", "M", "G", "T", "P"];
    let mut scaled = value;
    for prefix in PREFIXES {
        let digits = match scaled {
            0.0 => 0,
            _ if scaled < 9.995 => 2,
            _ if scaled < 99.95 => 1,
            _ => 0,
        };
        if scaled < 999.5 {
            let text = format!("{scaled:.digits$}");
            let is_whole = prefix.is_empty() && value.fract() == 0.0;
            return format!("{}{prefix}", if is_whole { format!("{value:.0}") } else { text });
        }
        scaled /= 1000.0;
    }
    format!("{value:.0}")
}

/// The same, or nothing for what is not known.
pub(super) fn si_or_blank(value: Option<f64>) -> String {
    value.map(si).unwrap_or_default()
}

/// A time in seconds, such as `0.3 s`, `5 min`, `3 h`, `12 d`.
pub(super) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 10.0 => format!("{s:.1} s"),
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.0} h", s / 3600.0),
        s => format!("{:.0} d", s / 86_400.0),
    }
}

/// Text without control characters, which could command the terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Text of many lines without the other control characters.
pub(super) fn printable_lines(text: &str) -> String {
    let safe = |c: char| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(safe).collect()
}

/// Rows in columns, without control characters; the columns of `right` are aligned to the right.
pub(crate) fn table(rows: &[Vec<String>], right: &[bool]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let length =
        |row: &Vec<String>, column: usize| row.get(column).map_or(0, |it| it.chars().count());
    let widths: Vec<usize> =
        (0..columns).map(|c| rows.iter().map(|row| length(row, c)).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let gap = if column > 0 { "  " } else { "" };
            let (blanks, cell) =
                (" ".repeat(widths[column] - cell.chars().count()), printable(cell));
            line += &match right.get(column) {
                Some(true) => format!("{gap}{blanks}{cell}"),
                _ => format!("{gap}{cell}{blanks}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let of = |value| si(value);
        assert_eq!(
            [of(0.0), of(0.5), of(7.0), of(12.34), of(999.0)],
            ["0", "0.50", "7", "12.3", "999"]
        );
        assert_eq!([of(999.6), of(1234.0), of(45_600_000.0)], ["1.00k", "1.23k", "45.6M"]);
        assert_eq!(of(1e12), "1.00T");
    }

    #[test]
    fn tables_have_columns() {
        let rows = [vec!["a".into(), "10".into(), "x".into()], vec!["long".into(), "5".into()]];
        assert_eq!(table(&rows, &[false, true]), "a     10  x\nlong   5\n");
    }

    #[test]
    fn terminals_are_not_commanded() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(printable_lines("a\x1b\nb"), "a\u{fffd}\nb");
        assert_eq!(table(&[vec!["a\x1b".into(), "b".into()]], &[]), "a\u{fffd}  b\n");
    }
}
