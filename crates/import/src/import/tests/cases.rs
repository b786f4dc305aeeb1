//! Cases from the field, one row for each kind of them: what the text says is what counts.

use super::*;

/// A golden text, and each of its results: the workload, one of its metrics, and that one's value.
type Case = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, f64)],
);

/// Each kind with its texts; the values are those that a person reads from them.
const READ: &[Case] = &[
    // Cut figures: the exact ones stand beside them.
    (
        "a cut figure",
        "fio/fio-3.33_slower-than-one_normal.txt",
        &[("fio write 4M", "throughput", 4_088_015.594_541_91)],
    ),
    (
        "a cut figure",
        "fio/fio-3.33_three-slow-writes_normal.txt",
        &[("fio write 4M", "operations", 3.0 / 2.076)],
    ),
    (
        "a cut figure",
        "fio/fio-3.33_slower-than-one_short_normal.txt",
        &[("fio randwrite 4M", "operations", 2.0 / 2.052)],
    ),
    (
        "a cut figure",
        "fio/fio-3.33_cut-a_normal.txt",
        &[("fio randwrite 1M", "operations", 8.0 / 3.603)],
    ),
    (
        "a cut figure",
        "fio/fio-3.33_cut-b_normal.txt",
        &[("fio randwrite 1M", "operations", 8.0 / 3.48)],
    ),
    (
        "several statements",
        "fio/fio-3.25_10.98k_short_normal.txt",
        &[("fio randread 4k", "operations", 10240.0 / 0.934)],
    ),
    (
        "several statements",
        "fio/fio-3.25_12.97k_normal.txt",
        &[("fio randread 4k", "operations", 10240.0 / 0.79)],
    ),
    (
        "several statements",
        "fio/fio-3.25_15.975k_normal.txt",
        &[("fio randread 4k", "operations", 10240.0 / 0.641)],
    ),
    (
        "several statements",
        "fio/fio-3.25_18.98k_normal.txt",
        &[("fio randread 4k", "operations", 10240.0 / 0.54)],
    ),
    (
        "several statements",
        "fio/fio-3.25_10.98k_normal.txt",
        &[("fio randread 4k", "operations", 10_963.597_430_406_85)],
    ),
    (
        "several statements",
        "mdtest/mdtest-3.2.0_verbose.txt",
        &[("mdtest 32 tasks, 320000 files", "file creation", 66_972.954)],
    ),
    // Unlike work is no repetition.
    (
        "unlike results",
        "dd/coreutils-8_flags.txt",
        &[
            ("dd write 1G in blocks of 1M", "throughput", 2_147_483_648.0),
            (
                "dd write 1G in blocks of 1M, conv=fdatasync",
                "throughput",
                107_374_182.4,
            ),
            (
                "dd write 1G in blocks of 1M, oflag=direct",
                "throughput",
                53_687_091.2,
            ),
        ],
    ),
    (
        "unlike results",
        "dd/coreutils-8_opposite-a.txt",
        &[
            (
                "dd write 1G in blocks of 1M, oflag=direct",
                "throughput",
                107_374_182.4,
            ),
            (
                "dd read 1G in blocks of 1M, iflag=direct",
                "throughput",
                536_870_912.0,
            ),
        ],
    ),
    (
        "cumulative reports",
        "fio/fio-3.33_status-interval_normal.txt",
        &[("fio randwrite 4k", "operations", 512.097_580_483_903_2)],
    ),
    // The oldest forms of what is read.
    (
        "another layout",
        "fio/fio-3.1_write_normal.txt",
        &[(
            "fio write 128k, iodepth 32",
            "throughput",
            64_959_123.022_474_97,
        )],
    ),
    (
        "another layout",
        "sysbench/sysbench-1.0-2016_rndrw.txt",
        &[(
            "sysbench random r/w, 16k, 8 thread(s)",
            "operations",
            13_758.48,
        )],
    ),
    // Ways of pasting.
    (
        "a quoted mail",
        "fio/fio-3.25_quoted_normal.txt",
        &[("fio write 4k", "throughput", 19_666_387.041_773_234)],
    ),
    (
        "four blanks",
        "fio/fio-3.25_indented_normal.txt",
        &[("fio write 4k", "throughput", 19_666_387.041_773_234)],
    ),
    (
        "a table alone",
        "mdtest/mdtest_summary-alone.txt",
        &[("mdtest", "file creation", 24_392.579)],
    ),
    (
        "a table alone",
        "elbencho/elbencho-3_resfile.txt",
        &[(
            "elbencho write, files of 256k in blocks of 256k, 1 thread(s)",
            "throughput",
            22_090_654.810_726_56,
        )],
    ),
    (
        "another language",
        "dd/coreutils-8_german.txt",
        &[("dd 967789B", "throughput", 105_909_112.795_909_78)],
    ),
    // Formats, and the spelling of one setting.
    (
        "all directions as one",
        "fio/fio-3.33_unified-mixed.json",
        &[("fio randrw 4k", "operations", 7_816.793_893)],
    ),
    (
        "a spelling",
        "fio/fio-3.33_bs-4k.json",
        &[("fio randread 4k", "operations", 13_837.837_838)],
    ),
];

/// What is refused, and a word of the reason.
const REFUSED: [(&str, &str); 2] = [
    (
        "iozone/iozone-3.429_diagnostic.txt",
        "Performance measurements are invalid",
    ),
    ("dd/with-a-part-of-sysbench.txt", "is of sysbench"),
];

#[test]
fn every_kind_of_case_has_its_right_value() {
    for (kind, file, right) in READ {
        let source = source(None, file, golden(file), None);
        let source = source.unwrap_or_else(|error| panic!("{kind}, {file}: {error}"));
        assert_eq!(source.results.len(), right.len(), "{kind}, {file}");
        for (result, (workload, metric, value)) in source.results.iter().zip(*right) {
            assert_eq!(result.workload, *workload, "{kind}, {file}");
            let at = result.metrics.iter().position(|head| head.name == *metric);
            let found = result.values[at.unwrap()].unwrap().value;
            assert!(
                (found - value).abs() <= 1e-9 * value,
                "{kind}, {file}: {found}"
            );
        }
    }
    for (file, why) in REFUSED {
        let misread = source(None, file, golden(file), None).err().unwrap();
        assert!(
            misread.what.contains(why) && !misread.next.is_empty(),
            "{file}: {misread}"
        );
    }
}
