//! Timestamps of packets.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Nanoseconds since the Unix epoch, negative before it; the range is 1677 to 2262.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// Nanoseconds in a second.
    const SECOND: i64 = 1_000_000_000;

    /// The time `nanos` nanoseconds after second `secs`; saturates at the last
    /// representable time.
    pub const fn new(secs: u64, nanos: u64) -> Self {
        let nanos = secs.saturating_mul(Self::SECOND as u64).saturating_add(nanos);
        Timestamp(if nanos > i64::MAX as u64 { i64::MAX } else { nanos as i64 })
    }

    /// Whole seconds, rounded down, so that the fraction is never negative.
    pub const fn secs(self) -> i64 {
        self.0.div_euclid(Self::SECOND)
    }

    /// Nanoseconds within the second.
    pub const fn subsec_nanos(self) -> u32 {
        self.0.rem_euclid(Self::SECOND) as u32
    }

    /// Microseconds within the second.
    pub const fn subsec_micros(self) -> u32 {
        self.subsec_nanos() / 1000
    }

    /// Date and time of day in UTC, in the format of C's `asctime`:
    /// `Tue Jul 24 17:53:30 2001`. Times before the epoch give the epoch.
    pub fn calendar(self) -> String {
        const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        const MONTHS: [&str; 12] =
            ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
        let time = Timestamp(self.0.max(0));
        let Date { year, month, day } = time.date();
        let (hour, minute, second) = time.time_of_day();
        let weekday = DAYS[(time.days() % 7) as usize];
        let month = MONTHS[month as usize - 1];
        format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
    }

    /// Date and time of day in UTC to the millisecond (RFC 3339): `2001-07-24T17:53:30.250Z`.
    pub fn rfc3339(self) -> String {
        format!("{}.{:03}Z", self.rfc3339_seconds(), self.subsec_micros() / 1000)
    }

    /// The same to the microsecond.
    pub fn rfc3339_micros(self) -> String {
        format!("{}.{:06}Z", self.rfc3339_seconds(), self.subsec_micros())
    }

    fn rfc3339_seconds(self) -> String {
        let Date { year, month, day } = self.date();
        let (hour, minute, second) = self.time_of_day();
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
    }

    /// Whole days since the epoch, rounded down.
    const fn days(self) -> i64 {
        self.secs().div_euclid(86_400)
    }

    /// Hour, minute and second in UTC.
    const fn time_of_day(self) -> (i64, i64, i64) {
        let second = self.secs().rem_euclid(86_400);
        (second / 3600, second / 60 % 60, second % 60)
    }

    /// The date in UTC.
    fn date(self) -> Date {
        // Years begin in March here, so that the leap day is the last day. All eras of
        // 400 years have 146 097 days. The first era began in year 0.
        let since = self.days() + 719_468;
        let (era, day) = (since.div_euclid(146_097), since.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let date = day - (153 * month + 2) / 5 + 1;
        let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
        Date { year: era * 400 + year + next, month, day: date }
    }
}

/// A date of the Gregorian calendar; month and day count from 1.
struct Date {
    year: i64,
    month: i64,
    day: i64,
}

impl From<Duration> for Timestamp {
    fn from(since_epoch: Duration) -> Self {
        Timestamp::new(since_epoch.as_secs(), since_epoch.subsec_nanos().into())
    }
}

/// Click's format: six digits after the point, or nine if needed.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, nanos) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let second = Self::SECOND.unsigned_abs();
        let (secs, nanos) = (nanos / second, nanos % second);
        if nanos.is_multiple_of(1000) {
            write!(f, "{sign}{secs}.{:06}", nanos / 1000)
        } else {
            write!(f, "{sign}{secs}.{nanos:09}")
        }
    }
}

/// Error: a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampError;

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a time in seconds, as `1000000000.5`")
    }
}

impl std::error::Error for TimestampError {}

impl FromStr for Timestamp {
    type Err = TimestampError;

    /// Parses seconds with an optional fraction and minus sign; digits after the ninth are
    /// ignored.
    fn from_str(text: &str) -> Result<Self, TimestampError> {
        if let Some(text) = text.strip_prefix('-').filter(|text| !text.starts_with('-')) {
            return text.parse::<Timestamp>().map(|time| Timestamp(-time.0));
        }
        let (secs, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if secs.len() + fraction.len() == 0 || !digits(secs) || !digits(fraction) {
            return Err(TimestampError);
        }
        let secs = if secs.is_empty() { "0" } else { secs };
        let secs = secs.parse().map_err(|_| TimestampError)?;
        let padded = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
        Ok(Timestamp::new(secs, padded.fold(0, |n, digit| n * 10 + u64::from(digit - b'0'))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_knows_leap_days() {
        for (seconds, text) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_399, "Mon Feb 28 23:59:59 2000"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (951_868_800, "Wed Mar  1 00:00:00 2000"),
            (996_022_410, "Wed Jul 25 00:53:30 2001"),
            (1_000_000_000, "Sun Sep  9 01:46:40 2001"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
            (4_107_542_399, "Sun Feb 28 23:59:59 2100"),
        ] {
            assert_eq!(Timestamp::new(seconds, 0).calendar(), text);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let clock = |nanoseconds| Timestamp(nanoseconds).rfc3339();
        assert_eq!(clock(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(clock(951_827_696_789_000_000), "2000-02-29T12:34:56.789Z");
        assert_eq!(clock(1_764_093_600_000_000_000), "2025-11-25T18:00:00.000Z");
        assert_eq!(clock(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(Timestamp(-1).rfc3339_micros(), "1969-12-31T23:59:59.999999Z");
    }

    #[test]
    fn prints_six_digits_or_nine() {
        assert_eq!(Timestamp::new(1_000_000_000, 5000).to_string(), "1000000000.000005");
        assert_eq!(Timestamp::new(7, 123_456_789).to_string(), "7.123456789");
        assert_eq!(Timestamp::default().to_string(), "0.000000");
        assert_eq!(Timestamp::new(u64::MAX, 0), Timestamp(i64::MAX));
    }

    #[test]
    fn times_before_the_epoch_have_a_sign() {
        for (time, text) in
            [(-750_000_000, "-0.750000"), (-1_000_000_000, "-1.000000"), (-1, "-0.000000001")]
        {
            assert_eq!(Timestamp(time).to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp(time)));
        }
        let time = Timestamp(-750_000_000);
        assert_eq!((time.secs(), time.subsec_micros()), (-1, 250_000));
        assert_eq!(Timestamp(i64::MIN).to_string(), "-9223372036.854775808");
    }

    #[test]
    fn reads_what_it_prints_and_more() {
        for (text, time) in [
            ("7.123456789", Timestamp::new(7, 123_456_789)),
            ("7.1234567891", Timestamp::new(7, 123_456_789)),
            ("7", Timestamp::new(7, 0)),
            ("7.5", Timestamp::new(7, 500_000_000)),
            (".5", Timestamp(500_000_000)),
            ("7.", Timestamp::new(7, 0)),
        ] {
            assert_eq!(text.parse(), Ok(time), "{text}");
        }
        for bad in ["", ".", "-", "--1", "1.-5", "1.2.3", "+1", "99999999999999999999", "x"] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimestampError), "{bad}");
        }
    }
}
