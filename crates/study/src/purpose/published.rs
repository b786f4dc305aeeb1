//! What others have published as enough for a purpose. Where there is none, nothing is made up.

use stackrace_base::unit::{self, UnitError};
use stackrace_base::video;

/// A bound on a metric of one directory, as it was typed or published.
#[derive(Debug, Clone, PartialEq)]
pub struct RequiredBound {
    /// Metric that is bounded, alone or after the name of its workload.
    pub metric: String,
    /// Bound with its sign.
    pub bound: String,
    /// Publisher and address; `None` where the user asked for it.
    pub source: Option<String>,
}

/// Purpose, metric, bound with its sign, publisher and address.
const PUBLISHED: [(&str, &str, &str, &str); 4] = [
    (
        "etcd",
        "fsync latency p99",
        "<= 10 ms",
        "etcd's FAQ, https://etcd.io/docs/v3.5/faq/",
    ),
    (
        // Of the 1,538 B that a frame takes on the wire, TCP with timestamps carries 1,448.
        "nas-gigabit",
        "throughput",
        ">= 117 MB/s",
        "Ethernet frames with 1,448 of 1,538 B of data, http://rickardnobel.se/actual-throughput-on-gigabit-ethernet/",
    ),
    (
        // With one operation at a time, so many of them take 10 ms on average.
        "vm-images",
        "guest mixed 4 KiB operations",
        ">= 100 /s",
        VMWARE,
    ),
    (
        "vm-images",
        "boot read 64 KiB operations",
        ">= 100 /s",
        VMWARE,
    ),
];

const VMWARE: &str =
    "10 ms for each, VMware KB 318927, https://knowledge.broadcom.com/external/article/318927";
/// Word in front of a format, and of cameras.
const VIDEO: &str = "video";
const SURVEILLANCE: &str = "surveillance";
/// Share of a format's rate that must be there besides it: the default of `stream-video`.
const HEADROOM: f64 = 0.2;

/// What a purpose requires of one directory. `detail` is what stands after the colon: a format of `video`, cameras of
/// `surveillance`.
///
/// # Errors
/// The purpose takes no such detail, or it is none.
pub fn required(purpose: &str, detail: Option<&str>) -> Result<Vec<RequiredBound>, UnitError> {
    match (purpose, detail) {
        (VIDEO, Some(format)) => of_format(format),
        (SURVEILLANCE, Some(cameras)) => Ok(vec![of_cameras(cameras)?]),
        (name, Some(detail)) => Err(UnitError {
            what: format!("{name} takes nothing after a colon, and there is \"{detail}\""),
            next: "leave it out; only \"video:FORMAT\" and \"surveillance:16x4Mbit/s\" do"
                .to_owned(),
        }),
        (name, None) => Ok(published(name).collect()),
    }
}

/// The published requirements of a purpose; none if there are none.
pub fn published(purpose: &str) -> impl Iterator<Item = RequiredBound> {
    let own = PUBLISHED.iter().filter(move |(name, ..)| *name == purpose);
    own.map(|(_, metric, bound, source)| RequiredBound {
        metric: (*metric).to_owned(),
        bound: (*bound).to_owned(),
        source: Some((*source).to_owned()),
    })
}

/// Words for a purpose whose requirement depends on what is said after a colon; empty for all others.
pub fn detail_of(purpose: &str) -> &'static str {
    match purpose {
        VIDEO => "a format of `stackrace show video-formats`: --for \"video:FORMAT\"",
        SURVEILLANCE => "the rate of all cameras: --for surveillance:16x4Mbit/s",
        _ => "",
    }
}

/// A format must be recorded and played back in the slowest second, too.
fn of_format(text: &str) -> Result<Vec<RequiredBound>, UnitError> {
    let (name, rate, source) = video::rate_of(text)?;
    let bound = format!(">= {:.1} MB/s", rate * (1.0 + HEADROOM) / 1e6);
    let of = |metric: &str| RequiredBound {
        metric: metric.to_owned(),
        bound: bound.clone(),
        source: Some(format!(
            "{name}: {} and {} more, {source}",
            unit::bytes_per_second(rate),
            unit::percent(HEADROOM)
        )),
    };
    Ok(vec![of(video::WRITE_SLOWEST), of(video::READ_SLOWEST)])
}

/// `16x4Mbit/s`: cameras, each with its rate.
fn of_cameras(text: &str) -> Result<RequiredBound, UnitError> {
    let unfit = || {
        UnitError {
        what: format!("\"{text}\" is no number of cameras with a rate"),
        next: "write it like surveillance:16x4Mbit/s; of one camera, Axis Communications writes 2 to 3 Mbit/s (https://www.securitysa.com/article.aspx?pklarticleid=6041)".to_owned(),
    }
    };
    let (cameras, rate) = text.split_once(['x', '×', '*']).ok_or_else(unfit)?;
    let cameras: u32 = cameras.trim().parse().map_err(|_| unfit())?;
    let each = unit::parse_of_metric("B/s", rate).map_err(|_| unfit())?;
    if cameras == 0 {
        return Err(unfit());
    }
    let all = f64::from(cameras) * each;
    Ok(RequiredBound {
        metric: "record throughput".to_owned(),
        bound: format!(">= {:.3} MB/s", all / 1e6),
        // What is required is the sum; the streams are those of the purpose.
        source: Some(format!(
            "{cameras} cameras of {}, as sixteen streams",
            rate.trim()
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(word: &str) -> Result<Vec<(String, String)>, String> {
        let (name, detail) = word
            .split_once(':')
            .map_or((word, None), |(a, b)| (a, Some(b)));
        let all = required(name, detail).map_err(|why| why.to_string())?;
        Ok(all.into_iter().map(|it| (it.metric, it.bound)).collect())
    }

    #[test]
    fn every_published_requirement_names_its_source() {
        for (_, _, _, source) in PUBLISHED {
            assert!(source.contains("://"), "{source}");
        }
        assert_eq!(of("postgresql"), Ok(Vec::new()));
    }

    #[test]
    fn formats_and_cameras_are_rates() {
        let format = of("video:1920x1080 24, 10-bit yuv").unwrap();
        assert_eq!(
            format[0],
            (
                "write slowest second".to_owned(),
                ">= 159.3 MB/s".to_owned()
            )
        );
        assert_eq!(format[1].0, "read slowest second");
        assert_eq!(of("video:ProRes 4444 XQ").unwrap()[0].1, ">= 75.0 MB/s");
        let cameras = of("surveillance:64x3.2Mbit/s").unwrap();
        assert_eq!(
            cameras,
            [("record throughput".to_owned(), ">= 25.600 MB/s".to_owned())]
        );
    }

    #[test]
    fn what_is_no_format_and_no_camera_is_refused_with_those_there_are() {
        for (word, part) in [
            ("video:1920x1080 24", "10-bit RGB"),
            ("video:1921x1080 24 10-bit RGB", "1920x1080 24 10-bit RGB"),
            ("video:beta", "show video-formats"),
            ("surveillance:16", "16x4Mbit/s"),
            ("surveillance:0x4Mbit/s", "16x4Mbit/s"),
            ("surveillance:4x4ms", "16x4Mbit/s"),
            ("mail:4", "leave it out"),
        ] {
            let said = of(word).unwrap_err();
            assert!(said.contains(part), "{word}: {said}");
        }
    }
}
